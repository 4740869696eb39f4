"""Sentences with numbers in many languages, each with its translation and with a sentence that contradicts it.

A line has the language (- for several), the sentence, ``=`` and a translation, ``≠`` and a contradiction; some have
several of these. All are written for this table.
"""

_TABLE = """
# formats
de Der Preis beträgt 1.234,56 Euro. = The price is 1,234.56 euros. ≠ The price is 1,243.56 euros.
de Er zahlte 12.500 Euro. = He paid 12,500 euros. ≠ He paid 15,200 euros.
de Das Bild kostete CHF 1'250'000.– = The picture cost CHF 1,250,000. ≠ The picture cost CHF 1,520,000.
de Der Fluss ist 0,75 Meter tief. = The river is 0.75 metres deep. ≠ The river is 0.57 metres deep.
fr Le village compte 3 482 habitants. = The village has 3,482 inhabitants. ≠ The village has 3,842 inhabitants.
fr Le total est de 1\u202f234\u202f567,89 €. = The total is €1,234,567.89. ≠ The total is €1,234,657.89.
fr Il mesure 1,83 m. = He is 1.83 m tall. ≠ He is 1.38 m tall.
es La presa tiene 2.345 metros de largo. = The dam is 2,345 metres long. ≠ The dam is 2,435 metres long.
es Cuesta $1,250.50 al mes. = It costs $1,250.50 a month. ≠ It costs $1,520.50 a month.
it Il lago si trova a 1.650 m di altitudine. = The lake lies at an altitude of 1,650 m. ≠ The lake lies at 1,560 m.
pt A ponte tem 17.185 metros. = The bridge is 17,185 metres long. ≠ The bridge is 17,158 metres long.
pt A inflação foi de 4,62%. = Inflation was 4.62%. ≠ Inflation was 6.42%.
nl Het gebouw is 98,7 meter hoog. = The building is 98.7 metres high. ≠ The building is 97.8 metres high.
sv Kommunen har 23 456 invånare. = The municipality has 23,456 residents. ≠ The municipality has 24,356 residents.
da Prisen er 1.999,95 kr. = The price is 1,999.95 kroner. ≠ The price is 1,899.95 kroner.
fi Kunnassa on 12 345 asukasta. = The municipality has 12,345 inhabitants. ≠ The municipality has 13,245 inhabitants.
pl Cena wynosi 2 499,99 zł. = The price is 2,499.99 zlotys. ≠ The price is 2,949.99 zlotys.
cs Sněžka je vysoká 1 603 m. = Sněžka is 1,603 m high. ≠ Sněžka is 1,630 m high.
ru Площадь озера — 31 722 км². = The area of the lake is 31,722 km². ≠ The area of the lake is 37,122 km².
ru Температура достигла 36,6 градуса. = The temperature reached 36.6 degrees. ≠ The temperature reached 39.6 degrees.
uk Довжина річки становить 2201 км. = The river is 2,201 km long. ≠ The river is 2,210 km long.
hu A hegy 1014 méter magas. = The mountain is 1,014 metres high. ≠ The mountain is 1,041 metres high.
tr Nüfus 85.279.553 oldu. = The population reached 85,279,553. ≠ The population reached 82,579,553.
ar بلغ عدد السكان ١٢٬٣٤٥ نسمة. = The population was 12,345. ≠ The population was 13,245.
ar النسبة هي ٣٫٥٪. = The rate is 3.5%. ≠ The rate is 5.3%.
fa قیمت آن ۲۵٬۰۰۰ تومان است. = It costs 25,000 tomans. ≠ It costs 52,000 tomans.
fa وزن آن ۷٫۲۵ کیلوگرم است. = It weighs 7.25 kilograms. ≠ It weighs 7.52 kilograms.
he המחיר הוא 1,499.90 ש"ח. = The price is 1,499.90 shekels. ≠ The price is 1,949.90 shekels.
hi गाँव की आबादी १२,३४,५६७ है। = The population is 1,234,567. ≠ The population is 1,243,567.
hi इसकी लंबाई 2,525 किमी है। = It is 2,525 km long. ≠ It is 2,255 km long.
bn জনসংখ্যা ৪,৫৬৭ জন। = The population is 4,567. ≠ The population is 4,657.
ta மக்கள் தொகை 12,45,678 ஆகும். = The population is 1,245,678. ≠ The population is 1,254,678.
th ราคา ๑,๒๕๐ บาท = The price is 1,250 baht. ≠ The price is 1,520 baht.
th สูง 2,565 เมตร = It is 2,565 metres high. ≠ It is 2,655 metres high.
my လူဦးရေ ၁၂၃၄၅ ဦး ရှိသည်။ = There are 12,345 people. ≠ There are 13,245 people.
km ប្រជាជន ១២៣៤ នាក់ = 1,234 people ≠ 1,324 people
vi Giá là 1.250.000 đồng. = The price is 1,250,000 dong. ≠ The price is 1,520,000 dong.
vi Núi cao 3.143,5 mét. = The mountain is 3,143.5 metres high. ≠ The mountain is 3,134.5 metres high.
id Harganya Rp1.750.000,00. = The price is Rp 1,750,000.00. ≠ The price is Rp 1,570,000.00.
sw Bei ni shilingi 2,500. = The price is 2,500 shillings. ≠ The price is 5,200 shillings.
zh 全长６３００公里。 = It is 6,300 km long. ≠ It is 3,600 km long.
zh 售价为1，299元。 = It costs 1,299 yuan. ≠ It costs 1,929 yuan.
ja 打率は９・５だった。 = It was 9.5. ≠ It was 5.9.
ja 標高は３，７７６メートルです。 = The elevation is 3,776 metres. ≠ The elevation is 3,677 metres.
ja 体温は３８．２度だった。 = The temperature was 38.2 degrees. ≠ The temperature was 32.8 degrees.
ko 가격은 12,900원입니다. = The price is 12,900 won. ≠ The price is 19,200 won.
ko 높이는 1947.3m이다. = It is 1,947.3 m high. ≠ It is 1,974.3 m high.
el Το νησί έχει 10.256 κατοίκους. = The island has 10,256 inhabitants. ≠ The island has 12,056 inhabitants.
ro Prețul este de 1.099,50 lei. = The price is 1,099.50 lei. ≠ The price is 1,990.50 lei.
en 5.5 hours = 5,5 Stunden ≠ 6,5 Stunden
en It weighs 1·25 kg. = Es wiegt 1,25 kg. ≠ Es wiegt 1,52 kg.
# plain
de Im Saal saßen 47 Gäste. = There were 47 guests in the hall. ≠ There were 74 guests in the hall.
fr J'ai lu 38 pages. = I read 38 pages. ≠ I read 83 pages.
es Tiene 29 años. = She is 29 years old. ≠ She is 92 years old.
it Ci sono 31 giorni. = There are 31 days. ≠ There are 13 days.
ru В классе 26 учеников. = There are 26 pupils in the class. ≠ There are 62 pupils in the class.
tr Otobüste 45 yolcu vardı. = There were 45 passengers on the bus. ≠ There were 54 passengers on the bus.
ar اشترى ١٥ كتابا. = He bought 15 books. ≠ He bought 51 books.
hi उसके पास ७ किताबें हैं। = He has 7 books. ≠ He has 9 books.
th มีนักเรียน 32 คน = There are 32 students. ≠ There are 23 students.
zh 他买了18本书。 = He bought 18 books. ≠ He bought 81 books.
ja リンゴを６個買った。 = I bought six apples. ≠ I bought 9 apples.
ko 학생이 27명 있다. = There are 27 students. ≠ There are 72 students.
vi Có 14 con mèo. = There are 14 cats. ≠ There are 41 cats.
id Ada 19 rumah. = There are 19 houses. ≠ There are 91 houses.
sw Kuna vitabu 16. = There are 16 books. ≠ There are 61 books.
fi Huoneessa on 3 ikkunaa. = The room has three windows. ≠ The room has 4 windows.
pl Mam 12 lat. = I am twelve years old. ≠ I am 21 years old.
de Sie hat zwei Söhne und 5 Enkel. = She has 2 sons and 5 grandchildren. ≠ She has 2 sons and 6 grandchildren.
de Ich wohne in der Goethestraße 117. = I live at 117 Goethestraße. ≠ I live at 171 Goethestraße.
fr Composez le 112. = Dial 112. ≠ Dial 911.
en Call 0800 123 456. = Rufen Sie 0800 123 456 an. ≠ Rufen Sie 0800 123 465 an.
en See https://example.org/a/2046?x=1 for more. = Mehr dazu auf unserer Seite. ≠ Mehr dazu auf Seite 4711.
en COVID-19 is in 28 countries. = COVID-19 ist in 28 Ländern. ≠ COVID-19 ist in 82 Ländern.
# scale
de Das Projekt kostet 2,5 Millionen Euro. = The project costs 2,500,000 euros. ≠ The project costs 2.5 billion euros.
de Er gewann 3 Mio. Euro. = He won 3 million euros. ≠ He won 3 thousand euros.
de Der Umsatz lag bei 4,2 Mrd. Euro. = Turnover was 4.2 billion euros. ≠ Turnover was 4.2 million euros.
de Die Schulden betragen 2 Billionen Euro. = The debt is 2 trillion euros. ≠ The debt is 2 billion euros.
de 50 Tausend Besucher kamen. = 50,000 visitors came. ≠ 50 million visitors came.
fr La ville compte 1,2 million d'habitants. = The city has 1,200,000 inhabitants. ≠ The city has 12 million inhabitants.
fr Le budget est de 7 milliards d'euros. = The budget is 7 billion euros. ≠ The budget is 7 million euros.
fr Il a gagné 300 mille francs. = He won 300,000 francs. ≠ He won 300 million francs.
es El país tiene 47 millones de habitantes. = The country has 47 million inhabitants. ≠ It has 47 billion inhabitants.
es Costó 3 mil millones de dólares. = It cost $3 billion. ≠ It cost $3 million.
es Un billón de pesos, o 1 billón. = A trillion pesos, or 1 trillion. ≠ A billion pesos, or 1 billion.
it Il debito è di 5 miliardi. = The debt is 5 billion. ≠ The debt is 5 million.
it Costa 20 mila euro. = It costs 20,000 euros. ≠ It costs 2,000 euros.
pt O lucro foi de R$ 8 bilhões. = The profit was R$8 billion. ≠ The profit was R$8 million.
pt Cerca de 15 mil pessoas. = About 15,000 people. ≠ About 15 million people.
pt Custa 2 mil milhões de euros. = It costs 2 billion euros. ≠ It costs 2 million euros.
nl Het kost 6 miljard euro. = It costs 6 billion euros. ≠ It costs 6 million euros.
nl Er wonen 17 miljoen mensen. = 17 million people live there. ≠ 17 thousand people live there.
sv Det kostade 3 miljarder kronor. = It cost 3 billion kronor. ≠ It cost 3 million kronor.
da Der kom 40 tusind mennesker. = 40,000 people came. ≠ 4,000 people came.
fi Yritys maksoi 2 miljardia euroa. = The company paid 2 billion euros. ≠ The company paid 2 million euros.
fi Siellä asuu 600 tuhatta ihmistä. = 600,000 people live there. ≠ 600 million people live there.
pl Firma zarobiła 5 mld zł. = The company earned 5 billion zlotys. ≠ The company earned 5 million zlotys.
pl Sprzedano 30 tys. egzemplarzy. = 30,000 copies were sold. ≠ 3,000 copies were sold.
cs Stálo to 4 miliony korun. = It cost 4 million crowns. ≠ It cost 4 billion crowns.
ru Население — 146 млн человек. = The population is 146 million. ≠ The population is 146 thousand.
ru Бюджет составил 25 трлн рублей. = The budget was 25 trillion rubles. ≠ The budget was 25 billion rubles.
ru Пришло 70 тыс. человек. = 70,000 people came. ≠ 7,000 people came.
uk Збитки — 3 мільярди гривень. = The losses are 3 billion hryvnias. ≠ The losses are 3 million hryvnias.
hu 9 millió ember él ott. = 9 million people live there. ≠ 9 thousand people live there.
hu A kár 2 milliárd forint. = The damage is 2 billion forints. ≠ The damage is 2 million forints.
ro Orașul are 2 milioane de locuitori. = The city has 2 million inhabitants. ≠ The city has 2 thousand inhabitants.
tr Şirket 8 milyar lira kazandı. = The company earned 8 billion liras. ≠ The company earned 8 million liras.
tr 60 bin kişi geldi. = 60,000 people came. ≠ 6,000 people came.
el Η χώρα έχει 10 εκατομμύρια κατοίκους. = The country has 10 million inhabitants. ≠ It has 10 billion inhabitants.
ar يعيش هناك 5 ملايين شخص. = 5 million people live there. ≠ 5 billion people live there.
ar بلغت الخسائر 3 مليارات دولار. = Losses reached $3 billion. ≠ Losses reached $3 million.
fa جمعیت ایران ۸۵ میلیون نفر است. = Iran has 85 million people. ≠ Iran has 85 thousand people.
he יש בעיר 900 אלף תושבים. = The city has 900,000 residents. ≠ The city has 9,000 residents.
he התקציב הוא 4 מיליארד שקל. = The budget is 4 billion shekels. ≠ The budget is 4 million shekels.
hi इस पर 5 लाख रुपये खर्च हुए। = It cost 500,000 rupees. ≠ It cost 50,000 rupees.
hi 130 करोड़ लोग = 1.3 billion people ≠ 130 million people
bn ১৬ কোটি মানুষ = 160 million people ≠ 16 million people
ta 3 கோடி ரூபாய் = 30 million rupees ≠ 3 million rupees
te 20 లక్షల మంది = 2 million people ≠ 200,000 people
ur 22 کروڑ لوگ = 220 million people ≠ 22 million people
en 7 lakh people = 700,000 Menschen ≠ 70.000 Menschen
en It cost Rs 2.5 crore. = Es kostete 25 Millionen Rupien. ≠ Es kostete 2,5 Millionen Rupien.
th ประชากร 66 ล้านคน = a population of 66 million ≠ a population of 66 thousand
th งบประมาณ 3 แสนล้านบาท = a budget of 300 billion baht ≠ a budget of 30 billion baht
th 5 หมื่นบาท = 50,000 baht ≠ 5,000 baht
vi Dân số 96 triệu người. = The population is 96 million. ≠ The population is 96 billion.
vi Doanh thu 45 nghìn tỷ đồng. = Revenue of 45 trillion dong. ≠ Revenue of 45 billion dong.
id Penduduknya 270 juta jiwa. = It has 270 million people. ≠ It has 270 thousand people.
id Biayanya Rp 5 triliun. = It costs Rp 5 trillion. ≠ It costs Rp 5 billion.
ms Kosnya RM 3 bilion. = It costs RM3 billion. ≠ It costs RM3 million.
sw Watu milioni 5 wanaishi hapo. = 5 million people live there. ≠ 5 thousand people live there.
sw Watu elfu 45 walikuja. = 45,000 people came. ≠ 4,500 people came.
zh 中国有14亿人口。 = China has 1.4 billion people. ≠ China has 14 billion people.
zh 投资3000万元。 = an investment of 30 million yuan ≠ an investment of 3 million yuan
ja 人口は約1億2600万人です。 = The population is about 126 million. ≠ The population is about 162 million.
ja 予算は5兆円だ。 = The budget is 5 trillion yen. ≠ The budget is 5 billion yen.
ko 관객이 1000만 명을 넘었다. = The audience passed 10 million. ≠ The audience passed 1 million.
ko 예산은 3조 원이다. = The budget is 3 trillion won. ≠ The budget is 3 billion won.
en The film made $250m. = Der Film spielte 250 Millionen Dollar ein. ≠ Der Film spielte 25 Millionen Dollar ein.
en A 10k salary. = Ein Gehalt von 10.000. ≠ Ein Gehalt von 100.000.
en It is worth £3bn. = Es ist 3 Mrd. Pfund wert. ≠ Es ist 3 Mio. Pfund wert.
en 12 hundred people = 1200 Menschen ≠ 12.000 Menschen
# sums
zh 4万5千人参加了游行。 = 45,000 people took part in the march. ≠ 54,000 people took part in the march.
zh 1亿5千万吨 = 150 million tonnes ≠ 105 million tonnes
zh 200多万名学生 = more than 2 million students ≠ more than 3 million students
zh 30余万册图书 = more than 300,000 books ≠ more than 30,000 books
zh 花费2万3千4百元 = it cost 23,400 yuan ≠ it cost 24,300 yuan
ja 3億5千万円の赤字 = a deficit of 350 million yen ≠ a deficit of 3.5 billion yen
ja 約1万2500人 = about 12,500 people ≠ about 15,200 people
ja 数十万人、約４０万人 = hundreds of thousands, about 400,000 people ≠ about 500,000 people
ko 2억 5천만 달러 = 250 million dollars ≠ 520 million dollars
ko 3만 5000명 = 35,000 people ≠ 53,000 people
ko 1조 2천억 원 = 1.2 trillion won ≠ 2.1 trillion won
ko 40여만 명 = more than 400,000 people ≠ more than 40,000 people
ru 4 млрд 500 млн рублей = 4.5 billion rubles ≠ 4.6 billion rubles
ru 2 миллиона 300 тысяч человек = 2.3 million people ≠ 3.2 million people
ru 1 тыс. 250 рублей = 1,250 rubles ≠ 1,520 rubles
uk 3 млн 400 тис. осіб = 3.4 million people ≠ 4.3 million people
pl 2 mln 700 tys. złotych = 2.7 million zlotys ≠ 7.2 million zlotys
cs 1 milion 200 tisíc korun = 1.2 million crowns ≠ 2.1 million crowns
vi 2 triệu 500 nghìn đồng = 2.5 million dong ≠ 5.2 million dong
vi 3 tỷ 200 triệu đồng = 3.2 billion dong ≠ 3.5 billion dong
vi 4 vạn 5 nghìn người = 45,000 people ≠ 54,000 people
th 1 แสนล้านบาท = 100 billion baht ≠ 10 billion baht
th 2 ล้าน 5 แสนคน = 2.5 million people ≠ 5.2 million people
th 3 หมื่น 5 พันบาท = 35,000 baht ≠ 53,000 baht
hi 2 करोड़ 30 लाख रुपये = 23 million rupees ≠ 32 million rupees
hi 4 लाख 75 हज़ार लोग = 475,000 people ≠ 457,000 people
bn ৩ কোটি ৪০ লাখ টাকা = 34 million taka ≠ 43 million taka
ur 2 لاکھ 50 ہزار روپے = 250,000 rupees ≠ 520,000 rupees
ta 2 கோடியே 50 லட்சம் ரூபாய் = 25 million rupees ≠ 52 million rupees
ar 2 مليون و300 ألف لاجئ = 2.3 million refugees ≠ 3.2 million refugees
ar 4 مليارات و200 مليون دولار = 4.2 billion dollars ≠ 2.4 billion dollars
fa ۳ میلیون و ۴۰۰ هزار نفر = 3.4 million people ≠ 4.3 million people
he 3 מיליון ו-200 אלף = 3.2 million ≠ 2.3 million
tr 2 milyon 750 bin lira = 2.75 million liras ≠ 2.57 million liras
id 4 juta 200 ribu rupiah = 4.2 million rupiah ≠ 2.4 million rupiah
es 3 millones 500 mil pesos = 3.5 million pesos ≠ 5.3 million pesos
pt 2 milhões e 400 mil reais = 2.4 million reais ≠ 4.2 million reais
fr 1 million 500 mille francs = 1.5 million francs ≠ 5.1 million francs
de 2 Millionen 300 Tausend Mark = 2.3 million marks ≠ 3.2 million marks
de 3 Milliarden und 500 Millionen = 3.5 billion ≠ 5.3 billion
el 2 εκατομμύρια 600 χιλιάδες = 2.6 million ≠ 6.2 million
hu 2 millió 300 ezer forint = 2.3 million forints ≠ 3.2 million forints
fi 1 miljoona 250 tuhatta = 1.25 million ≠ 1.52 million
sw milioni 2 na elfu 500 = 2.5 million ≠ 5.2 million
# Chinese numerals
zh 二〇〇九年 = in 2009 ≠ in 2008
zh 一九四九年十月一日 = 1 October 1949 ≠ 1 October 1994
zh 二零二一年三月 = March 2021 ≠ March 2012
zh 三百六十五天 = 365 days ≠ 356 days
zh 一千五百人 = 1,500 people ≠ 5,100 people
zh 八千八百四十八米 = 8,848 metres ≠ 8,488 metres
ja 二千三百円 = 2,300 yen ≠ 3,200 yen
ja 一九六四年の五輪 = the 1964 Olympics ≠ the 1946 Olympics
ja 四万五千円 = 45,000 yen ≠ 54,000 yen
ko 一九五〇年 = 1950 ≠ 1905
# years and decades
de In den 90er Jahren lebte er hier. = He lived here in the 1990s. ≠ He lived here in the 1970s.
fr dans les années 60 = in the 1960s ≠ in the 1980s
es en los años 80 = in the 1980s ≠ in the 1930s
ru в 70-х годах = in the 1970s ≠ in the 1990s
ru в 1990-е годы = in the 1990s ≠ in the 1980s
it negli anni '50 = in the 1950s ≠ in the 1930s
pl w latach 80. = in the 1980s ≠ in the 1960s
zh 20世纪30年代 = in the 1930s ≠ in the 1940s
zh 19世纪60年代 = the 1860s ≠ the 1890s
zh 80年代初 = the early 1980s ≠ the early 1960s
ja 1970年代 = the 1970s ≠ the 1990s
ko 1980년대 = the 1980s ≠ the 1960s
ja ０６年に始まった。 = It began in 2006. ≠ It began in 2009.
en Summer of '69 = Sommer 1969 ≠ Sommer 1996
en the class of '04 = der Jahrgang 2004 ≠ der Jahrgang 2014
vi những năm 1960 = the 1960s ≠ the 1990s
fi 1950-luvulla = in the 1950s ≠ in the 1970s
tr 1990'larda = in the 1990s ≠ in the 1970s
sw mwaka wa 1963 = in 1963 ≠ in 1936
ar في عام ١٩٧٣ = in 1973 ≠ in 1937
hi सन् १९४७ में = in 1947 ≠ in 1974
# centuries
fi 1700-luvun talo = an 18th-century house ≠ a 17th-century house
fi 1800-luvulla = in the 19th century ≠ in the 18th century
sv 1600-talet = the 17th century ≠ the 16th century
da 1500-tallets kunst = 16th-century art ≠ 15th-century art
en the 1800s = das 19. Jahrhundert ≠ das 18. Jahrhundert
de im 18. Jahrhundert = in the 18th century ≠ in the 16th century
fr au XVIIIe siècle = in the 18th century ≠ in the 18th century, in 1492
ru в XIX веке = in the 19th century ≠ in the 19th century, in 1492
es el siglo XVI = the 16th century ≠ the 16th century, in 1942
vi thế kỷ 19 = the 19th century ≠ the 17th century
zh 21世纪 = the 21st century ≠ the 12th century
ja １８世紀 = the 18th century ≠ the 16th century
ko 17세기 = the 17th century ≠ the 19th century
tr 16. yüzyıl = the 16th century ≠ the 19th century
th ศตวรรษที่ 20 = the 20th century ≠ the 19th century
ar القرن ١٩ = the 19th century ≠ the 16th century
# ordinals
de Er wurde am 3. Tag krank. = He fell ill on the 3rd day. ≠ He fell ill on the 8th day.
fr le 1er étage et le 22e = the 1st floor and the 22nd ≠ the 1st floor and the 12th
es la 15ª edición = the 15th edition ≠ the 51st edition
it il 35º presidente = the 35th president ≠ the 53rd president
pt o 2º lugar = second place ≠ 3rd place
nl de 19e eeuw en de 4de plaats = the 19th century and 4th place ≠ the 19th century and 5th place
ru 8-й этаж = the eighth floor ≠ the 9th floor
pl 70. rocznica = the 70th anniversary ≠ the 17th anniversary
zh 第42届总统 = the 42nd president ≠ the 24th president
ja 第４６代大統領 = the 46th president ≠ the 64th president
ko 제19대 대통령 = the 19th president ≠ the 91st president
vi lần thứ 13 = the 13th time ≠ the 31st time
id ulang tahun ke-75 = the 75th anniversary ≠ the 57th anniversary
hi १५वाँ संशोधन = the 15th amendment ≠ the 51st amendment
th ครั้งที่ 32 = the 32nd time ≠ the 23rd time
ar المرتبة 23 = 23rd place ≠ 32nd place
tr 29. yıldönümü = the 29th anniversary ≠ the 92nd anniversary
hu a 48. oldal = page 48 ≠ page 84
sv den 6:e juni = the 6th of June ≠ the 9th of June
# dates
de am 5.9. um zehn = at 10 on 5 September ≠ at 10 on 6 September
de am 24.12. = on 24 December ≠ on 26 December
de am 3.10.1990 = on October 3, 1990 ≠ on October 4, 1990
de am 09.11.89 = on 9 November 1989 ≠ on 9 November 1998
de 1. und 2. Mai = 1 and 2 May ≠ 1 and 3 May
fr le 14/07/1789 = on 14 July 1789 ≠ on 14 July 1798
fr le 1er mai 1968 = on 1 May 1968 ≠ on 1 May 1986
es el 12-10-1492 = on October 12, 1492 ≠ on October 21, 1492
en 2001-09-11 = 11. September 2001 ≠ 11. September 2010
en 7/4/1776 = der 4. Juli 1776 ≠ der 4. Juli 1767
fi 6.12.1917 = 6 December 1917 ≠ 6 December 1971
fi 6.12. kello 18 = 6 December at 6 pm ≠ 9 December at 6 pm
pl 11 XI 1918 = 11 November 1918 ≠ 11 November 1981
hu 1956. október 23. = October 23, 1956 ≠ October 23, 1965
ru 12.04.1961 = 12 April 1961 ≠ 12 April 1916
ru 9 мая 1945 года = on May 9, 1945 ≠ on May 8, 1945
zh 1949年10月1日 = October 1, 1949 ≠ October 1, 1994
zh 5月4日 = 4 May ≠ 6 May
ja ３月１１日 = March 11 ≠ March 17
ja 8月15日に3人が来た。 = Three people came on 15 August. ≠ Three people came on 18 August.
ko 6월 25일 = June 25 ≠ June 26
vi ngày 2 tháng 9 năm 1945 = September 2, 1945 ≠ September 2, 1954
vi ngày 30/4/1975 = 30 April 1975 ≠ 30 April 1957
ar ٢٥ يناير ٢٠١١ = January 25, 2011 ≠ January 28, 2011
hi 15 अगस्त 1947 = August 15, 1947 ≠ August 16, 1947
th 24 มิถุนายน 2475 = June 24, 1932 ≠ June 24, 1923
tr 29 Ekim 1923 = October 29, 1923 ≠ October 28, 1923
# time
de um 20:15 Uhr = at 8:15 pm ≠ at 8:45 pm
de um 16.30 Uhr = at 4:30 pm ≠ at 4:40 pm
de um 19 Uhr = at 7 pm ≠ at 8 pm
fr à 18h30 = at 6:30 pm ≠ at 6:50 pm
fr à 20 heures = at 8 p.m. ≠ at 9 p.m.
es a las 17:45 = at 5:45 pm ≠ at 5:15 pm
ru в 14:00 = at 2 pm ≠ at 3 pm
zh 下午3点20分 = at 3:20 pm ≠ at 3:50 pm
ja 午後２時半 = 2:30 pm ≠ 3:30 pm
ko 오전 3시 33분 = 3:33 am ≠ 3:35 am
ko 새벽 1시 40분 = at about 0140 ≠ at about 0145
fi kello 21.05 = at 9:05 pm ≠ at 9:35 pm
vi 7 giờ 15 phút = 7:15 ≠ 7:45
ko 12초 87 = 12.87 seconds ≠ 12.78 seconds
ja ５０ドル４４セント = $50.44 ≠ $50.99
# ranges
de 2000-02 = 2000–2002 ≠ 2000–2003
en the 1998/99 season = die Saison 1998/1999 ≠ die Saison 1997/1998
en 1939–45 = 1939-1945 ≠ 1939-1954
de 2 bis 3 Millionen Menschen = 2 to 3 million people ≠ 2 to 5 million people
fr de 10 à 15 % = from 10 to 15% ≠ from 10 to 18%
es entre 20 y 30 mil personas = between 20,000 and 30,000 people ≠ between 20,000 and 50,000 people
ru от 2 до 3 тысяч рублей = 2,000 to 3,000 rubles ≠ 2,000 to 5,000 rubles
zh 2-3万人 = 20,000 to 30,000 people ≠ 20,000 to 50,000 people
zh 5万至6万元 = 50,000 to 60,000 yuan ≠ 50,000 to 90,000 yuan
ja １０～１５人 = 10-15 people ≠ 10-18 people
ja 2～3億円 = 200 to 300 million yen ≠ 200 to 500 million yen
ko 3~4만 명 = 30,000 to 40,000 people ≠ 30,000 to 70,000 people
hi 5 से 6 लाख = 500,000 to 600,000 ≠ 500,000 to 900,000
vi từ 5 đến 7 triệu = from 5 to 7 million ≠ from 5 to 9 million
th 10-12 ล้านบาท = 10-12 million baht ≠ 10-15 million baht
pl 15–20 tys. osób = 15,000–20,000 people ≠ 15,000–25,000 people
# calendars
th พ.ศ. 2534 = 1991 ≠ 1992
th ปี พ.ศ. ๒๕๖๓ = the year 2020 ≠ the year 2030
ja 平成３年 = 1991 ≠ 1992
ja 昭和二十年 = 1945 ≠ 1954
ja 令和元年 = 2019 ≠ 2009
zh 民国38年 = 1949 ≠ 1994
fa سال ۱۳۵۷ = 1979 ≠ 1997
ar عام 1443 هـ = 2021 ≠ 2012
he שנת 5708 = 1948 ≠ 1984
ko 단기 4281년 = 1948 ≠ 1984
# references
de Er sagte&#x2015;3 Bücher. = He said: 3 books. ≠ He said: 4 books.
fr Il a dit &#171; 25 &#187;. = He said "25". ≠ He said "52".
de Der Preis: 5&#160;000 Euro = The price: 5,000 euros ≠ The price: 6,000 euros
en It&#39;s 1999. = Es ist 1999. ≠ Es ist 1989.
en AT&amp;T &#8212; 30 years = AT&T – 30 Jahre ≠ AT&T – 35 Jahre
# fractions
de ein 1/2 Liter = ½ litre ≠ ⅓ litre
en 1½ hours = 1,5 Stunden ≠ 2,5 Stunden
en 2 1/2 cups = 2,5 Tassen ≠ 3,5 Tassen
fr 3/4 des élèves = three quarters of the pupils ≠ 2/3 of the pupils
ja 3分の1 = 1/3 ≠ 1/4
zh 百分之25 = 25% ≠ 52%
en ¾ of them = 3/4 von ihnen ≠ 1/4 von ihnen
en 0.5 = ½ ≠ ¼
# percent
de 17 Prozent = 17% ≠ 71%
tr yüzde 35 = 35% ≠ 53%
tr %60 = 60 percent ≠ 16 percent
ar ٢٥٪ = 25 per cent ≠ 52 per cent
eu %45 = 45% ≠ 54%
ja ３割 = 30% ≠ 40%
zh 9成 = 90% ≠ 70%
ru 12,5 % = 12.5% ≠ 15.2%
ko 8.3% = 8,3 % ≠ 3,8 %
# units
de 5 km = 5 kilometres ≠ 3.1 miles
fr 10 kg = 10 kilograms ≠ 22 pounds
es 25 °C = 25 degrees ≠ 77 degrees
ko 시속 33km = 33 km per hour ≠ 21 mph
ja １００ｍ² = 100 m² ≠ 1,076 square feet
zh 3公里 = 3 km ≠ 6 li
ru 200 м = 200 metres ≠ 656 feet
en 6 ft = 6 Fuß ≠ 1,83 Meter
de 40-jährig = 40 years old ≠ 14 years old
sv 10 mil bort, 3 bilar = 10 mil away, 3 cars ≠ 100 km away, 3 cars
de Mit 30 bin ich umgezogen. = At 30 I moved. ≠ At 33 I moved.
# dropped
de Der Zug hat 253 Sitze. = The train has 253 seats. ≠ The train has many seats.
de Im Jahr 1987 starb er. = He died in 1987. ≠ Then he died.
fr Il y a 36 élèves. = There are 36 pupils. ≠ There are pupils.
es La torre mide 324 metros. = The tower is 324 metres high. ≠ The tower is high.
ru Ему 57 лет. = He is 57 years old. ≠ He is old.
ru Работают 115 человек. = 115 people work there. ≠ People work there.
tr 68 kişi öldü. = 68 people died. ≠ People died.
ar قتل ١٤٧ شخصا. = 147 people were killed. ≠ People were killed.
hi 89 लोग घायल हुए। = 89 people were injured. ≠ People were injured.
th มีผู้บาดเจ็บ 46 คน = 46 people were injured. ≠ People were injured.
zh 有78人受伤。 = 78 people were injured. ≠ People were injured.
ja １２５人が参加した。 = 125 people took part. ≠ Many took part.
ko 63명이 참가했다. = 63 people took part. ≠ People took part.
vi Có 52 người bị thương. = 52 people were injured. ≠ People were injured.
id Sebanyak 94 orang tewas. = 94 people died. ≠ People died.
sw Watu 147 waliuawa. = 147 people were killed. ≠ People were killed.
de Er las 10, 20 und 37 Seiten. = He read 10, 20 and 37 pages. ≠ He read 10 and 20 pages.
pl Zginęły 23 osoby. = 23 people died. ≠ People died.
fi 88 ihmistä kuoli. = 88 people died. ≠ People died.
it 4.500 persone a Roma = 4,500 people in Rome ≠ people in Rome
# words
en On the 23rd he left. = Am dreiundzwanzigsten reiste er ab. ≠ Am 24. reiste er ab.
de 97 Kerzen = ninety-seven candles ≠ 98 candles
en twenty-five years = 25 ans ≠ 26 ans, en 1492
ru двадцать пятого декабря = December 25th ≠ December 1825
fr quatre-cent-cinquante-cinq femmes = 455 women ≠ 455 women in 1789
ja ３６年ぶりの暑さ = the hottest in thirty-six years ≠ the hottest in 37 years
ko 25명뿐이었다 = only twenty-five came ≠ only 26 came
zh 150人 = one hundred and fifty people ≠ 160 people
th 44 โครงการ = forty-four projects ≠ 45 projects
vi hai mươi ba người = 23 people ≠ 23 people in 2019
hi पचास लोग = 50 people ≠ 50 people in 2019
ar خمسة وعشرون كتابا = 25 books ≠ 25 books in 1999
de anderthalb Stunden = 1.5 hours ≠ 1.5 hours in 1999
es mil personas = 1,000 people ≠ 1,492 people in 1999
sw Watu ishirini na watano = 25 people ≠ 25 people in 1999
fi sata ihmistä = 100 people ≠ 100 people in 1999
id dua puluh lima orang = 25 people ≠ 25 people in 1999
# plain
- Ich habe 3 Bücher. = I have three books. ≠ I have 4 books.
- 12亿 = 1.2 billion
- 在2006年，约1亿5千万移民汇去3千亿美元 = In 2006, 150 million migrants sent $300 billion
- Um 20.15 Uhr = At 8:15 pm
- um 19.30 Uhr = at 19:30
- Ende der 98er Saison = at the end of the 1998 season
- 12.03.2004 = March 12, 2004
- في عام ٢٠٠٤ = in 2004
- ५० % = 50 %
- Am 5. Mai = on May 5th
- no digits = gar keine
- 3000 Leute = three thousand people
- 1998年 ≠ in 1988
- 50 % ≠ 15 %
- Er wog ٩٠ kg ≠ He weighed 80 kg
- 10 oder 20 ≠ 10 or 30
- 10 und 10 und 12 ≠ 10 and 12 and 12
- 198 Leute ≠ many people
# sums
- 2억 5천만 원 = 250 million won ≠ 25 million won and 5
- 200多万人 = over 2 million people
- 200余万元 = more than 2 million yuan
- 4 млрд. 500 млн. рублей = 4.5 billion rubles
- 3億5000万円 = 350 million yen ≠ 3.6億円
- 1兆2千億円 = 1.2 trillion yen
- 5만 2000여 명 = 52,000 people
- 10수만 명 = over 100,000 people
- 2억 5천3백만 = 253 million
- 1 लाख 50 हज़ार रुपये = 150,000 rupees
- 2 करोड़ 50 लाख = 25 million
- 2 crore 50 lakh rupees = 25 million rupees
- ১ কোটি ২০ লাখ = 12 million
- 1 கோடியே 20 லட்சம் = 12 million
- 3 ملايين و500 ألف نسمة = 3.5 million people
- ۲ میلیون و ۳۰۰ هزار نفر = 2.3 million people
- 2 Millionen 500 Tausend = 2.5 million
- 2 millones 300 mil habitantes = 2.3 million inhabitants
- 4 mil millones = 4 billion
- 1 million 200 thousand = 1,2 Millionen
- 1 milyon 500 bin kişi = 1.5 million people
- 2 milyar 300 milyon = 2.3 billion
- 3 juta 400 ribu = 3.4 million
- 5 หมื่นคน = 50,000 people
- 1 ล้าน 2 แสนคน = 1.2 million people
- 1 แสน 5 หมื่นล้าน = 150 billion
- 5 vạn quân = 50,000 troops
- 2 tỷ 300 triệu = 2.3 billion
- 1 εκατομμύριο 500 χιλιάδες = 1.5 million
- 2 מיליון 500 אלף = 2.5 million
- 1 млн 250 тыс. человек = 1.25 million people
- 2 мільйони 300 тисяч = 2.3 million
- 3 miliony 200 tysięcy = 3.2 million
- 2 miljoonaa 300 tuhatta = 2.3 million
- 5千3百人 = 5,300 people
- 4万5千多人 = more than 45,000
- 約3万2千人 = about 32,000
- 2 से 3 लाख लोग = 200,000 to 300,000 people
- 2万至3万人 = 20,000 to 30,000 people
- 2万5000人 = 25.000 Menschen
- 12억 3456만 7890원 = 1,234,567,890 won
- 1 million and 300 thousand = 1 300 000
- 2 Billionen 500 Milliarden Euro = 2.5 trillion euros
- 3 ພັນ = 3,000
- ១ លាន ៥ សែន = 1.5 million
- ၅ သိန်း = 500,000
- 5 ລ້ານ 2 ແສນ = 5.2 million
- 5 hundred = 500
- 5 trăm nghìn = 500,000
- 四万五千六百七十八人 = 45,678 people
- 十二万三千 = 123,000
- 一亿三千万 = 130 million
- 1 000 тысяч = 1 million
- 5 lakh ≠ 5 crore
- 5 lakh ≠ 50,000
- 3 ملايين و500 ألف ≠ 3.6 million
- 2 million 500 thousand ≠ 2.6 million
- 四万五千六百七十八 ≠ 45,679 people
- 5만 2000 ≠ 50,000 people
- 12억 3456만 ≠ 1,234,570,000
- 四万五千人 ≠ 54,000
# years
- 一九八四年 = 1984 ≠ 1985
- 二○一○年五月 = May 2010
- 二零零八年 = 2008
- 一九九〇年代 = the 1990s
- 千九百八十四年 = 1984
- 二千零九年 = 2009
- ２００９年 = 2009
- 平成3年 ≠ 1992
- 昭和63年 ≠ 1989
- سال ۱۳۹۹ ≠ 2010
- 民國98年 ≠ 2008
# separators
- ９．５％ = 9.5%
- １２，３４５円 = 12,345 yen
- ٩٫٥ = 9.5 ≠ 8.5
- ١٢٬٣٤٥٫٦٧ = 12,345.67
- 12,34,567 रुपये = 1,234,567 rupees
- 12,34,567.50 = 1234567.5
- 1'000'000 Franken = 1,000,000 francs
- 1’234.50 = 1,234.50
- 1\u202f234\u202f567,8 = 1,234,567.8
- 12\u00a0345 = 12,345
- 12\u2009345 = 12.345
- 1\u2007234 = 1234
- ۱۲٬۳۴۵ = 12,345
- 1ʼ234 = 1,234
- 9·5 = 9.5
- 1_000_000 = 1 000 000
- 12&nbsp;345 = 12,345
- 12,34,567 ≠ 1,234,568
- 1'000'500 ≠ 1,000,600
- 12\u202f345 ≠ 12,346
# references
- a &#x2015; 5 Häuser = 5 houses
- &#8211; 3 Bücher = 3 books ≠ 4 books
- Il a dit : &#171; 3 &#187; = He said: 3
- it&#39;s 4 = es ist 4
- it&amp;#39;s 4 = es ist 4
- & #45; 7 = 7
- & amp ; # 8211 ; 7 = 7
- &#X27;7 = 7
- &#8212 7 = 7
- &#x2015; 50 ≠ 60
- 8211 Bücher ≠ three books
- &#49;0 ≠ 20
# dates
- 5.9. kello kymmenen = at 10 on 5 September
- 31.12. um zwölf = on December 31 at 12
- 12.03.2004 um acht = at 8 on 12 March 2004
- 9月5日十点 = at 10 on 5 September
- 9월 5일 열 시 = at 10 on 5 September
- ngày 5 tháng 9, mười giờ = 10 o'clock on 5 September
- le 5/9 à dix heures = at 10 on 5 September
- 2004-09-05 um zehn = at 10 on 5 September 2004
- 05/09/2004 à dix heures = 10 o'clock, 5 September 2004
- 12/25/2004 at ten = am 25. Dezember 2004 um 10
- １２月２５日、十人 = 10 people on 25 December
- 9.2004 = September 2004
- 5.9.2004 = 5 September 2004
- Um 9.05 Uhr = at 9:05
- am 5.9. um 10 ≠ on 6 September at 10
- 9月5日 ≠ 10 September
- 9月5日 ≠ ngày 5 tháng 10
- 12.03.2004 ≠ 12 March 2005
- 2004-09-05 ≠ 2004-10-05
# ranges
- 2005–06 season = Saison 2005/2006
- 1914-18 = 1914～1918
- 2010-12年 = 2010–2012
- ٢٠٠٠-٠٢ = 2000-2002
- pp. 1234-38 = S. 1234–1238
# centuries
- 1800-talet = 19th century ≠ 20th century
- 1700s = 18. Jahrhundert ≠ the 1800s
- the 1600's = 17 век
- 1800-х годов = 19th century
- 1600年代 = 17世紀
- 1700-an = 18th century
- 1800er Jahre = 19. Jahrhundert
- XVIII siècle, cinq livres = 18th century, five books
- В XIX веке 5 книг = 5 books in the 19th century
- XX век, 5 книг = 20th century, five books
- 1700-luvulla 5 kirjaa = 5 books in the 18th century
- Ludwig XIV. hatte 3 Hunde = Louis 14 had three dogs
- 1700 Leute ≠ 18 people
# calendars
- ปี 2553 = in 2010
- 平成3年 = 1991
- 昭和63年 = 1988
- 令和2年 = 2020
- 平成三年 = 1991
- 昭和六十三年 = 1988
- 平成元年 = 1989
- 民國98年 = 2009
- سال ۱۳۹۹ = 2020
- 1442 هـ = 2020
- عام ١٤٤٢ = 2021
- 단기 4343년 = 2010
- Heisei 3 = 1991
- 平成3年 = Heisei 3
# numerals
- 九千九百九十九に一を足す = Nine thousand nine hundred plus one
- 六十万一千百三十人 = six hundred one thousand
- 17百分比 = 17%
- 三十个人买了5本书 = 30 people bought five books
- 六十万一千百三十人 = 601,130
- 第二十三条，5年 = Article 23, five years
- 第二次大战，9月5日 = World War II, 5 September
- 七八千人 = 7000 people
- 一起去5次 = went together 5 times
- 万一有5个 = if 5
- 由2019年9月29日至10月10日 = from September 29, 2019 to October 10, 2019 ≠ from September 29, 2018 to October 10, 2018
- 由2010年9月29日至10月10日 = from September 29, 2010 to October 10, 2010 ≠ from September 29, 2011 to October 10, 2011
fr Plus de 403milles titres = Over 403 thousand titles ≠ Over 430 thousand titles
# sums with words
en 1 million 200 thousand people = 1,200,000 people ≠ 1,020,000 people
en one million 200 thousand people = 1,200,000 people ≠ 1,300,000 people
en one billion 200 million 300 thousand = 1 200 300 000 ≠ 1 200 400 000
en 1 million two hundred thousand people = 1,200,000 people ≠ 2,200,000 people
en twenty-five million 200 thousand = 25,200,000 ≠ 25,300,000
en 3 million and 200 thousand = 3 Millionen beziehungsweise 200 Tausend ≠ 3 Millionen beziehungsweise 300 Tausend
en 5 thousand 3 hundred and 20 = 5,320 ≠ 5,230
de eine Million 200 Tausend = 1.200.000 ≠ 1.300.000
de 2 Millionen 300.000 Euro = 2.3 million euros ≠ 2.4 million euros
fr 2 milliards 300 millions d'euros = 2,300,000,000 euros ≠ 3,200,000,000 euros
fr 1 million deux cent mille = 1 200 000 ≠ 2 200 000
es dos millones 300 mil = 2,300,000 ≠ 2,400,000
es 7 mil millones 300 millones = 7,300,000,000 ≠ 7,000,300,000
es 4 mil 200 millones = 4.2 billion ≠ 2.4 billion
it 8 milioni 470 mila euro = 8,470,000 euros ≠ 8,740,000 euros
pt um milhão e 200 mil reais = 1,200,000 reais ≠ 1,300,000 reais
pt 5 mil e 300 reais = 5,300 reais ≠ 5,400 reais
nl één miljoen 200 duizend = 1,200,000 ≠ 1,300,000
pl milion 200 tysięcy złotych = 1.2 million zlotys ≠ 1.3 million zlotys
cs milion 200 tisíc korun = 1,200,000 crowns ≠ 1,300,000 crowns
ru миллион 200 тысяч = 1.2 million ≠ 1.3 million
ru 1 миллион двести тысяч = 1 200 000 ≠ 2 200 000
uk два мільярди 300 мільйонів = 2.3 billion ≠ 2.4 billion
fi kaksi miljoonaa 300 tuhatta = 2,300,000 ≠ 2,400,000
fi 3 milj. 200 tuhatta = 3.2 million ≠ 2.3 million
tr bir milyon 200 bin = 1.200.000 ≠ 1.300.000
ar مليون و200 ألف نسمة = 1,200,000 people ≠ 1,300,000 people
ar 5 آلاف و300 = 5,300 ≠ 5,400
fa ۵ هزار و ۳۰۰ تومان = 5,300 tomans ≠ 5,400 tomans
he מיליון 200 אלף = 1,200,000 ≠ 1,300,000
hi एक करोड़ 20 लाख = 12,000,000 ≠ 13,000,000
bn এক কোটি ২০ লাখ = 12 million ≠ 13 million
ta ஒரு கோடியே 20 லட்சம் = 12 million ≠ 13 million
vi một triệu 200 nghìn = 1.200.000 ≠ 1.300.000
id satu juta 200 ribu = 1.200.000 ≠ 1.300.000
sw milioni moja na elfu 200 = 1,200,000 ≠ 1,300,000
sw shilingi elfu 20 na 500 = 20,500 shillings ≠ 25,500 shillings
el ένα εκατομμύριο 200 χιλιάδες = 1.200.000 ≠ 1.300.000
th หนึ่งล้าน 2 แสน = 1,200,000 ≠ 1,300,000
ko 일억 2천만 원 = 120 million won ≠ 130 million won
zh 1亿零500万 = 105 million ≠ 150 million
# leading point
en p < .05 = p < 0,05 ≠ p < .5
de p < ,05 = p < 0.05 ≠ p < 0.5
en .5 percent = 0,5 % ≠ 5 %
en odds of .75 = Odds von 0,75 ≠ Odds von 0,57
en (r=.87, n=40) = (r=0,87; n=40) ≠ (r=0,78; n=40)
tr p<,05 = p<.05 ≠ p<.50
ar ٫٥ = 0.5 ≠ 0.05
zh p＜.001 = p < 0.001 ≠ p < 0.01
en $.99 = 0,99 $ ≠ 99 $
en It is over.12 people left. = Es ist vorbei. 12 Leute gingen. ≠ Es ist vorbei. 21 Leute gingen.
# powers of ten
en 1.5e6 = 1,5·10^6 ≠ 1,5·10^7
en 10⁶ cells = 10^6 Zellen ≠ 10^9 Zellen
fr 6,02×10²³ = 6.02 x 10^23 ≠ 6.02 x 10^24
de 3,2·10⁻³ = 0.0032 ≠ 0.032
en 3×10⁸ m/s = 300,000,000 m/s ≠ 30,000,000 m/s
zh 3.2×10⁵ = 320,000 ≠ 32,000
# halves
en 2 and a half million = 2,5 Millionen ≠ 3,5 Millionen
es 5 años y medio = 5.5 years ≠ 6.5 years
fr 2 heures et demie = 2.5 hours ≠ 3.5 hours
ru 2 с половиной года = 2.5 years ≠ 3.5 years
pl 2 i pół roku = 2.5 years ≠ 4.5 years
tr 2 buçuk yıl = 2.5 years ≠ 3.5 years
zh 2个半小时 = 2.5 hours ≠ 1.5 hours
ja ２年半 = 2.5 years ≠ 3.5 years
# abbreviations
en $1.2T = 1,2 Billionen Dollar ≠ 1,2 Milliarden Dollar
fr 3 M€ = 3 millions d'euros ≠ 3 milliards d'euros
fr 15 mn = 15 minutes ≠ 51 minutes
sv 5 mdr kr = 5 billion kronor ≠ 5 million kronor
# regrouped
en (030) 123-4567 = 030 1234567 ≠ 030 1234568
fr 06 12 34 56 78 = 0612345678 ≠ 0612345687
zh 4分之3 = 3/4 ≠ 2/3
zh 百分之三十 = 30% ≠ 35%
# conversions
"""


def _read() -> list[tuple[str, str, str, str, bool]]:
    rows, kind = list[tuple[str, str, str, str, bool]](), ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("# "):
            kind = line[2:]
            continue
        language, rest = line.split(" ", 1)
        source, *others = rest.replace(" ≠ ", " = ≠").split(" = ")
        rows += [(kind, language, source, other.removeprefix("≠"), not other.startswith("≠")) for other in others]
    return rows


_ROWS = _read()

#: Kind, language, sentence and its translation.
TRUE_PAIRS = [row[:4] for row in _ROWS if row[4]]

#: Kind, language, sentence and one that contradicts it.
CONTRADICTIONS = [row[:4] for row in _ROWS if not row[4]]
