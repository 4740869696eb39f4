"""Numbers of many scripts and habits of writing, and when two sides contradict each other."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_xling.mining.numbers import Quantity, agree, contradiction, leftovers, quantities


def values(text):
    return [number.digits * 10.0**number.power for number in quantities(text)]


READING: list[tuple[str, list[float]]] = [
    ("no number, ½, m², Ⅳ, ③, 二十", []),
    ("1,234.5", [1234.5]),
    ("1.234,5", [1234.5]),
    ("1 234 567", [1234567]),
    ("1\u202f234,5", [1234.5]),
    ("1'234'567", [1234567]),
    ("12,34,567", [1234567]),
    ("3,5 %", [3.5]),
    ("0,75", [0.75]),
    ("007", [7]),
    ("12.03.2004", [12, 3, 2004]),
    ("2004-03-12", [2004, 3, 12]),
    ("20:15", [20, 15]),
    ("v1.2.3", [1, 2, 3]),
    ("３，５００ 円", [3500]),
    ("１２", [12]),
    ("١٢٬٣٤٥٫٦", [12345.6]),
    ("۱۲", [12]),
    ("१२ मार्च २०२०", [12, 2020]),
    ("๑๒", [12]),
    ("3.5万", [35000]),
    ("1亿5千万", [1.5e8]),
    ("3千亿美元", [3e11]),
    ("9만4000원", [94000]),
    ("2-3万人", [20000, 30000]),
    ("230—260亿", [2.3e10, 2.6e10]),
    ("5 लाख और 2 करोड़", [500000, 2e7]),
    ("in 1984 300 people", [1984, 300]),
    ("COVID-19, A380", [19, 380]),
    ("a &#8212; b", []),
    ("0", [0]),
    ("0.0", [0]),
]


def test_reading():
    for text, expected in READING:
        assert values(text) == pytest.approx(expected), text


def test_very_long_digits_are_read_in_time():
    """Python refuses to turn more than 4300 digits into an int; nor may separators cost quadratic time."""
    assert len(quantities("9" * 10_000)) == 1
    assert len(quantities("1.2" * 20_000)) > 1000


@given(st.integers(0, 10**9))
def test_written_forms_of_one_number_agree(number):
    forms = [str(number), f"{number:,}", f"{number:,}".replace(",", "."), f"{number:,}".replace(",", "\u00a0")]
    forms.append(str(number).translate({48 + digit: 0x660 + digit for digit in range(10)}))
    first = quantities(forms[0])
    for form in forms[1:]:
        read = quantities(form)
        assert len(read) == 1
        assert agree(first[0], read[0])


AGREEING = [
    ("Ich habe 3 Bücher.", "I have three books."),
    ("2,5 Millionen Euro", "2,500,000 euros"),
    ("12亿", "1.2 billion"),
    ("在2006年，约1亿5千万移民汇去3千亿美元", "In 2006, 150 million migrants sent $300 billion"),
    ("Um 20.15 Uhr", "At 8:15 pm"),
    ("um 19.30 Uhr", "at 19:30"),
    ("Ende der 98er Saison", "at the end of the 1998 season"),
    ("12.03.2004", "March 12, 2004"),
    ("في عام ٢٠٠٤", "in 2004"),
    ("५० %", "50 %"),
    ("Am 5. Mai", "on May 5th"),
    ("no digits", "gar keine"),
    ("3000 Leute", "three thousand people"),
    ("198 Leute", "many people"),
    ("12", "12000"),
]
CONTRADICTING = [
    ("Ich habe 3 Bücher.", "I have 4 books."),
    ("1998年", "in 1988"),
    ("50 %", "15 %"),
    ("Er wog ٩٠ kg", "He weighed 80 kg"),
    ("10 oder 20", "10 or 30"),
    ("10 und 10 und 12", "10 and 12 and 12"),
    ("12", "120"),
    ("Im Jahr 1987 starb er.", "Then he died."),
]


def test_agreement_and_contradiction():
    for way in (1, -1):
        assert [pair for pair in AGREEING if contradiction(*pair[::way]) is not None] == []
        assert [pair for pair in CONTRADICTING if contradiction(*pair[::way]) is None] == []
    found = contradiction("10 oder 20 im Jahr 1990", "10 or 2.5 in 1990")
    assert found == {"source": ["20"], "target": ["25e-1"]}


# Each kind in several scripts and languages.
TRUE_PAIRS: dict[str, list[tuple[str, str]]] = {
    "sums": [
        ("4万5千人", "45,000 people"),
        ("2억 5천만 원", "250 million won"),
        ("200多万人", "over 2 million people"),
        ("200余万元", "more than 2 million yuan"),
        ("4 млрд 500 млн рублей", "4.5 billion rubles"),
        ("4 млрд. 500 млн. рублей", "4.5 billion rubles"),
        ("2 triệu 500 nghìn đồng", "2.5 million dong"),
        ("1 แสนล้านบาท", "100 billion baht"),
        ("3億5000万円", "350 million yen"),
        ("1兆2千億円", "1.2 trillion yen"),
        ("5만 2000여 명", "52,000 people"),
        ("10수만 명", "over 100,000 people"),
        ("2억 5천3백만", "253 million"),
        ("1 लाख 50 हज़ार रुपये", "150,000 rupees"),
        ("2 करोड़ 50 लाख", "25 million"),
        ("2 crore 50 lakh rupees", "25 million rupees"),
        ("১ কোটি ২০ লাখ", "12 million"),
        ("1 கோடியே 20 லட்சம்", "12 million"),
        ("3 ملايين و500 ألف نسمة", "3.5 million people"),
        ("۲ میلیون و ۳۰۰ هزار نفر", "2.3 million people"),
        ("2 Millionen 500 Tausend", "2.5 million"),
        ("2 millones 300 mil habitantes", "2.3 million inhabitants"),
        ("4 mil millones", "4 billion"),
        ("1 million 200 thousand", "1,2 Millionen"),
        ("1 milyon 500 bin kişi", "1.5 million people"),
        ("2 milyar 300 milyon", "2.3 billion"),
        ("3 juta 400 ribu", "3.4 million"),
        ("5 หมื่นคน", "50,000 people"),
        ("1 ล้าน 2 แสนคน", "1.2 million people"),
        ("1 แสน 5 หมื่นล้าน", "150 billion"),
        ("5 vạn quân", "50,000 troops"),
        ("2 tỷ 300 triệu", "2.3 billion"),
        ("1 εκατομμύριο 500 χιλιάδες", "1.5 million"),
        ("2 מיליון 500 אלף", "2.5 million"),
        ("1 млн 250 тыс. человек", "1.25 million people"),
        ("2 мільйони 300 тисяч", "2.3 million"),
        ("3 miliony 200 tysięcy", "3.2 million"),
        ("2 miljoonaa 300 tuhatta", "2.3 million"),
        ("5千3百人", "5,300 people"),
        ("4万5千多人", "more than 45,000"),
        ("約3万2千人", "about 32,000"),
        ("2 से 3 लाख लोग", "200,000 to 300,000 people"),
        ("2万至3万人", "20,000 to 30,000 people"),
        ("2万5000人", "25.000 Menschen"),
        ("12억 3456만 7890원", "1,234,567,890 won"),
        ("1 million and 300 thousand", "1 300 000"),
        ("2 Billionen 500 Milliarden Euro", "2.5 trillion euros"),
        ("3 ພັນ", "3,000"),
        ("១ លាន ៥ សែន", "1.5 million"),
        ("၅ သိန်း", "500,000"),
        ("5 ລ້ານ 2 ແສນ", "5.2 million"),
        ("5 hundred", "500"),
        ("5 trăm nghìn", "500,000"),
        ("四万五千六百七十八人", "45,678 people"),
        ("十二万三千", "123,000"),
        ("一亿三千万", "130 million"),
        ("1 000 тысяч", "1 million"),
    ],
    "years": [
        ("二〇〇九年", "in 2009"),
        ("一九八四年", "1984"),
        ("二○一○年五月", "May 2010"),
        ("二零零八年", "2008"),
        ("一九九〇年代", "the 1990s"),
        ("千九百八十四年", "1984"),
        ("二千零九年", "2009"),
        ("２００９年", "2009"),
    ],
    "separators": [
        ("９・５", "9.5"),
        ("９．５％", "9.5%"),
        ("１２，３４５円", "12,345 yen"),
        ("٩٫٥", "9.5"),
        ("١٢٬٣٤٥٫٦٧", "12,345.67"),
        ("12,34,567 रुपये", "1,234,567 rupees"),
        ("12,34,567.50", "1234567.5"),
        ("1'000'000 Franken", "1,000,000 francs"),
        ("1’234.50", "1,234.50"),
        ("1\u202f234\u202f567,8", "1,234,567.8"),
        ("12\u00a0345", "12,345"),
        ("12\u2009345", "12.345"),
        ("1\u2007234", "1234"),
        ("۱۲٬۳۴۵", "12,345"),
        ("၁၂၃", "123"),
        ("1ʼ234", "1,234"),
        ("9·5", "9.5"),
        ("1_000_000", "1 000 000"),
        ("12&nbsp;345", "12,345"),
        ("१२,३४,५६७", "1,234,567"),
    ],
    "references": [
        ("a &#x2015; 5 Häuser", "5 houses"),
        ("&#8211; 3 Bücher", "3 books"),
        ("Il a dit : &#171; 3 &#187;", "He said: 3"),
        ("it&#39;s 4", "es ist 4"),
        ("it&amp;#39;s 4", "es ist 4"),
        ("& #45; 7", "7"),
        ("& amp ; # 8211 ; 7", "7"),
        ("&#X27;7", "7"),
        ("&#8212 7", "7"),
        ("&#x2015;", "one two 5"),
    ],
    "dates": [
        ("am 5.9. um zehn", "at 10 on 5 September"),
        ("am 5.9.", "on 5 September"),
        ("5.9. kello kymmenen", "at 10 on 5 September"),
        ("31.12. um zwölf", "on December 31 at 12"),
        ("5.09 в десять", "5 September at 10"),
        ("12.03.2004 um acht", "at 8 on 12 March 2004"),
        ("9月5日十点", "at 10 on 5 September"),
        ("9월 5일 열 시", "at 10 on 5 September"),
        ("ngày 5 tháng 9, mười giờ", "10 o'clock on 5 September"),
        ("le 5/9 à dix heures", "at 10 on 5 September"),
        ("2004-09-05 um zehn", "at 10 on 5 September 2004"),
        ("05/09/2004 à dix heures", "10 o'clock, 5 September 2004"),
        ("12/25/2004 at ten", "am 25. Dezember 2004 um 10"),
        ("１２月２５日、十人", "10 people on 25 December"),
        ("9.2004", "September 2004"),
        ("5.9.2004", "5 September 2004"),
        ("Um 9.05 Uhr", "at 9:05"),
    ],
    "ranges": [
        ("2000-02", "2000–2002"),
        ("1998/99", "1998-1999"),
        ("2005–06 season", "Saison 2005/2006"),
        ("1914-18", "1914～1918"),
        ("2010-12年", "2010–2012"),
        ("٢٠٠٠-٠٢", "2000-2002"),
        ("pp. 1234-38", "S. 1234–1238"),
        ("2-3万人", "20,000-30,000 people"),
    ],
    "centuries": [
        ("1700-luvun", "18th century"),
        ("1800-talet", "19th century"),
        ("1500-tallet", "16th century"),
        ("1700s", "18. Jahrhundert"),
        ("the 1600's", "17 век"),
        ("1800-х годов", "19th century"),
        ("1600年代", "17世紀"),
        ("1700-an", "18th century"),
        ("1800er Jahre", "19. Jahrhundert"),
        ("XVIII siècle, cinq livres", "18th century, five books"),
        ("В XIX веке 5 книг", "5 books in the 19th century"),
        ("XX век, 5 книг", "20th century, five books"),
        ("siglo XVI", "16th century"),
        ("1700-luvulla 5 kirjaa", "5 books in the 18th century"),
        ("Ludwig XIV. hatte 3 Hunde", "Louis 14 had three dogs"),
    ],
    "calendars": [
        ("พ.ศ. 2534", "1991"),
        ("พ.ศ. ๒๕๖๓", "2020"),
        ("ปี 2553", "in 2010"),
        ("平成3年", "1991"),
        ("昭和63年", "1988"),
        ("令和2年", "2020"),
        ("平成三年", "1991"),
        ("昭和六十三年", "1988"),
        ("平成元年", "1989"),
        ("民國98年", "2009"),
        ("سال ۱۳۹۹", "2020"),
        ("سال ۱۳۵۷", "1979"),
        ("1442 هـ", "2020"),
        ("عام ١٤٤٢", "2021"),
        ("단기 4343년", "2010"),
        ("2534", "พ.ศ. 2534"),
        ("Heisei 3", "1991"),
        ("平成3年", "Heisei 3"),
    ],
    "numerals": [
        ("九千九百九十九に一を足す", "Nine thousand nine hundred plus one"),
        ("六十万一千百三十人", "six hundred one thousand"),
        ("17百分比", "17%"),
        ("三十个人买了5本书", "30 people bought five books"),
        ("六十万一千百三十人", "601,130"),
        ("第二十三条，5年", "Article 23, five years"),
        ("第二次大战，9月5日", "World War II, 5 September"),
        ("七八千人", "7000 people"),
        ("一起去5次", "went together 5 times"),
        ("万一有5个", "if 5"),
    ],
}
WRONG_PAIRS: dict[str, list[tuple[str, str]]] = {
    "conversions": [
        ("5 km", "3.1 miles"),
        ("10 km", "6 miles"),
    ],
    "sums": [
        ("45,000 people", "54,000 Menschen"),
        ("4万5千人", "4,500 people"),
        ("4万5千人", "54,000"),
        ("2억 5천만 원", "25 million won and 5"),
        ("2억 5천만", "520 million"),
        ("200多万", "over 3 million"),
        ("4 млрд 500 млн", "4.6 billion"),
        ("2 triệu 500 nghìn", "2.4 million"),
        ("1 แสนล้าน", "2 แสนล้าน"),
        ("1 แสน", "10,000"),
        ("5 lakh", "5 crore"),
        ("5 lakh", "50,000"),
        ("3 ملايين و500 ألف", "3.6 million"),
        ("2 million 500 thousand", "2.6 million"),
        ("四万五千六百七十八", "45,679 people"),
        ("5만 2000", "50,000 people"),
        ("3億5000万円", "3.6億円"),
        ("12억 3456만", "1,234,570,000"),
        ("四万五千人", "54,000"),
    ],
    "years": [
        ("二〇〇九年", "2008"),
        ("一九八四年", "1985"),
        ("平成3年", "1992"),
        ("พ.ศ. 2534", "1990"),
        ("昭和63年", "1989"),
        ("سال ۱۳۹۹", "2010"),
        ("2534", "2535"),
        ("民國98年", "2008"),
    ],
    "separators": [
        ("９・５", "9.7"),
        ("12,34,567", "1,234,568"),
        ("1'000'500", "1,000,600"),
        ("٩٫٥", "8.5"),
        ("12\u202f345", "12,346"),
    ],
    "references": [
        ("&#8211; 3 Bücher", "4 books"),
        ("&#x2015; 50", "60"),
        ("8211 Bücher", "three books"),
        ("&#49;0", "20"),
    ],
    "dates": [
        ("am 5.9. um 10", "on 6 September at 10"),
        ("am 5.9.", "6 September"),
        ("5.9.", "5.10."),
        ("9月5日", "10 September"),
        ("9月5日", "ngày 5 tháng 10"),
        ("12.03.2004", "12 March 2005"),
        ("2004-09-05", "2004-10-05"),
    ],
    "ranges": [
        ("2000-02", "2000–2003"),
        ("1998/99", "1997-1998"),
        ("2-3万人", "20,000-40,000"),
    ],
    "centuries": [
        ("1700-luvun", "17th century"),
        ("1700 Leute", "18 people"),
        ("1800-talet", "20th century"),
        ("1700s", "the 1800s"),
    ],
}


@pytest.mark.parametrize("kind", TRUE_PAIRS)
def test_true_pairs_are_kept(kind):
    for way in (1, -1):
        assert [pair for pair in TRUE_PAIRS[kind] if contradiction(*pair[::way]) is not None] == []


@pytest.mark.parametrize("kind", WRONG_PAIRS)
def test_contradictions_are_found(kind):
    for way in (1, -1):
        assert [pair for pair in WRONG_PAIRS[kind] if contradiction(*pair[::way]) is None] == []


LONG = ["{} ", "1 ", "1/2/", "2000-0{} ", "1.2", "5万", "1 and ", "一二", "& ", "三万", "5 thousand "]


@pytest.mark.parametrize("piece", LONG)
def test_lines_of_many_numbers(piece):
    """20,000 numbers a line, with one more on one side: what would take minutes if it were quadratic."""
    source, target = ("".join(piece.format(2 * row + odd) for row in range(20_000)) for odd in (0, 1))
    assert contradiction(source, source) is None
    assert contradiction(source, f"{target}; 4711") is not None


NUMBERS = st.lists(st.builds(Quantity, st.integers(1, 9), st.integers(0, 1)), max_size=6)


@given(NUMBERS, NUMBERS)
def test_leftovers_of_small_numbers_are_multiset_differences(source, target):
    """Digits 1 to 9, times 1 or 10: nothing agrees but equals, except for a clock's 8 and 20 (10 hours apart: none)."""
    left, right = leftovers(source, target)
    clock = {(Quantity(small, 0), Quantity(2, 1)) for small in (8,)}
    clock |= {(two, one) for one, two in clock}
    possible = any((one, two) in clock for one in source for two in target)
    if not possible:
        assert Counter(left) == Counter(source) - Counter(target)
        assert Counter(right) == Counter(target) - Counter(source)
    mirrored = leftovers(target, source)
    assert (len(mirrored[1]), len(mirrored[0])) == (len(left), len(right))
