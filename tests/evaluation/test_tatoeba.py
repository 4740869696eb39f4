"""Translation retrieval: keys, averages, signatures; languages, groups and text with English, from anywhere."""

from pathlib import Path

import numpy as np
import pytest
import torch
from datasets import Dataset

from st_xling.data.pairs import Sample
from st_xling.data.phrasebook import parallel_phrases
from st_xling.evaluation import (
    TATOEBA_GROUPS,
    BuccEvaluator,
    PrecisionEvaluator,
    RerankingEvaluator,
    RetrievalEvaluator,
    TatoebaEvaluator,
    precision_at,
    resolve_languages,
)
from st_xling.evaluation.tatoeba import aligned_pairs, load_english_pairs
from st_xling.models.normalization import Centering, apply_centering
from tests.evaluation.table_model import TableModel

ENGLISH = ["The cat sleeps.", "I drink tea.", "Where is the station?", "Snow fell today. ❄"]
PAIRS = {
    "de": (["Die Katze schläft.", "Ich trinke Tee.", "Wo ist der Bahnhof?", "Heute fiel Schnee. ❄"], ENGLISH),
    "th": (["แมวนอนหลับ", "ฉันดื่มชา", "สถานีอยู่ที่ไหน", "วันนี้หิมะตก ❄"], ENGLISH),
    "ara": (["القطة نائمة.", "أشرب الشاي.", "أين المحطة؟"], ENGLISH[:3]),
}


def perfect(pairs):
    """Every row i of every language is basis vector i."""
    table = {}
    for sides in pairs.values():
        for side in sides:
            table |= {text: np.eye(6)[row] for row, text in enumerate(side)}
    return table


def test_keys_values_and_averages():
    table = perfect(PAIRS)
    # German row 1 now finds English row 0, and English row 1 finds nothing near; English row 0 takes the first twin.
    table["Ich trinke Tee."] = table["The cat sleeps."]
    evaluator = TatoebaEvaluator(PAIRS)
    metrics = evaluator(TableModel(table))
    f1 = {key: metrics.pop(key) for key in [*metrics] if key.endswith("_weighted_f1")}
    assert f1["tatoeba_deu_to_en_weighted_f1"] == pytest.approx((2 / 3 + 0 + 1 + 1) / 4)
    assert len(f1) == 6 and f1["tatoeba_tha_from_en_weighted_f1"] == 1.0
    languages = {"ara": 1.0, "deu": 3 / 4, "tha": 1.0}
    expected = dict.fromkeys(("tatoeba_to_en_accuracy", "tatoeba_from_en_accuracy", "tatoeba_mean_accuracy"), 11 / 12)
    for code, accuracy in languages.items():
        expected[f"tatoeba_{code}_to_en_accuracy"] = accuracy
        expected[f"tatoeba_{code}_from_en_accuracy"] = accuracy
    assert metrics == pytest.approx(expected)
    # Both German sentences lie nearest English 0; English 1 still lies nearest German 1.
    table = {"a": [1, 0], "b": [0.9, 0.5], "x": [1, 0.1], "y": [0, 1]}
    metrics = TatoebaEvaluator({"de": (["a", "b"], ["x", "y"])}, name="")(TableModel(table))
    ways = [metrics[f"{way}_accuracy"] for way in ("deu_to_en", "deu_from_en", "mean")]
    assert ways == [0.5, 1.0, 0.75]


def test_signature_follows_texts_order_and_truncation():
    evaluator = TatoebaEvaluator(PAIRS, name="mini")
    body, digest = evaluator.identity.split("@")
    assert body == "tatoeba|languages:ara,deu,tha|direction:both|ties:index|data:mini"
    assert len(digest.split("|")[0]) == 8 and "|st-xling:" in digest
    assert TatoebaEvaluator(dict(reversed(PAIRS.items())), name="mini").identity == evaluator.identity
    swapped = {**PAIRS, "ara": (PAIRS["ara"][0][::-1], PAIRS["ara"][1])}
    assert TatoebaEvaluator(swapped, name="mini").identity != evaluator.identity
    precision = PrecisionEvaluator(CHINESE, name="dev").identity
    assert precision.startswith("precision|at:1,5|pairs:zh-vi|direction:both|ties:index|data:dev@")
    assert PrecisionEvaluator({"zh-vi": CHINESE["zh-vi"][::-1]}, name="dev").identity != precision
    group = {language: (["a", "b"], ["a", "b"]) for language in TATOEBA_GROUPS["xnli14"]}
    evaluator = TatoebaEvaluator(group)
    assert "|languages:xnli14|" in evaluator.identity
    metrics = evaluator(TableModel(perfect(group)))
    assert metrics["tatoeba_xnli14_mean_accuracy"] == 1.0 and "tatoeba_xtreme36_mean_accuracy" not in metrics


def test_errors():
    for pairs, message in (
        ({"de": (["a", "b"], ["c"]), "fr": ([], [])}, "de has 2 and 1 texts.*fr has 0"),
        ({"de": (["a"], ["b"]), "deu": (["a"], ["b"])}, "both mean deu"),
    ):
        with pytest.raises(ValueError, match=message):
            TatoebaEvaluator(pairs)
    with pytest.raises(ValueError, match="deu.*NaN or infinity in row 1"):
        TatoebaEvaluator(PAIRS)(TableModel({**perfect(PAIRS), "Ich trinke Tee.": np.full(6, np.nan)}))
    with pytest.raises(ValueError, match="zh-vi: queries must hold finite vectors .* only zeros in row 1"):
        PrecisionEvaluator(CHINESE)(TableModel(vectors([np.diag([1.0, 0, 1]), np.eye(3)])))


CHINESE = {"zh-vi": (["你好。", "谢谢。", "再见。"], ["Xin chào.", "Cảm ơn.", "Tạm biệt."])}


def vectors(sides):
    table = {}
    for texts, vectors_of_side in zip(CHINESE["zh-vi"], sides):
        table |= dict(zip(texts, vectors_of_side))
    return table


def test_figures_by_hand() -> None:
    """Source 0 and 1 are swapped, 2 is right: P@1 is 1/3 both ways, P@2 is 1."""
    source = np.array([[0.5, 1, 0], [1, 0.5, 0], [0, 0, 1]])
    evaluator = PrecisionEvaluator({**CHINESE, "zh-en": (ENGLISH[:3], CHINESE["zh-vi"][1])}, at=(1, 2), name="")
    table = vectors([source, np.eye(3)]) | dict(zip(ENGLISH, np.eye(3)))
    metrics = evaluator(TableModel(table))
    assert metrics["zh-vi_source_to_target_p@1"] == metrics["zh-vi_mean_p@1"] == pytest.approx(1 / 3)
    assert metrics["zh-vi_mean_p@2"] == 1.0
    assert metrics["mean_p@1"] == metrics["target_to_source_p@1"] == pytest.approx(2 / 3)


def test_means_of_languages_are_found_in_any_spelling(make_model, caplog: pytest.LogCaptureFixture) -> None:
    """And text of a language that has none is told of, and signed."""
    means = {"zho": torch.linspace(-0.3, 0.3, 16), "vie": torch.linspace(0.3, -0.2, 16)}
    model = apply_centering(make_model().eval(), Centering(torch.zeros(16), means))
    evaluator = PrecisionEvaluator(CHINESE, name="dev")
    metrics = evaluator(model)
    chinese, vietnamese = CHINESE["zh-vi"]
    source = model.encode(chinese, task="zho")
    target = model.encode(vietnamese, task="vie")
    assert metrics["dev_zh-vi_source_to_target_p@1"] == precision_at(source, target)[0][1]
    assert "center:joint" not in evaluator.evaluate(model).signature and not caplog.text
    other = PrecisionEvaluator({"th-vi": CHINESE["zh-vi"]}, name="dev").evaluate(model)
    assert "|center:joint|" in other.signature and "centered by their joint mean" in caplog.text


XTREME = "af ar bg bn de el es et eu fa fi fr he hi hu id it ja jv ka kk ko ml mr nl pt ru sw ta te th tl tr ur vi zh"


def test_groups_and_names_of_languages():
    sizes = {group: len(set(members)) for group, members in TATOEBA_GROUPS.items()}
    assert sizes == {"xnli14": 14, "full28": 28, "xtreme36": 36, "laser112": 112}
    for smaller in ("xnli14", "full28"):
        assert set(TATOEBA_GROUPS[smaller]) < set(TATOEBA_GROUPS["xtreme36"]) < set(TATOEBA_GROUPS["laser112"])
    for members in TATOEBA_GROUPS.values():
        assert list(members) == sorted(set(members))
    # Column heads of DAP, table 7.
    assert sorted(resolve_languages(XTREME.split())) == list(TATOEBA_GROUPS["xtreme36"])
    assert resolve_languages("zh, et,fa") == ("cmn", "est", "pes")
    assert resolve_languages(["sw", "deu", "de"]) == ("swh", "deu")
    assert resolve_languages("XNLI14") == TATOEBA_GROUPS["xnli14"]
    for unknown, message in (
        ("xtreme63", "group of them .*xnli14, full28.*'xtreme63'; did you mean .*'xtreme36'"),
        (["deu", "cnm"], "got 'cnm'; did you mean .*'cmn'"),
        ("en", "English is paired with: got 'en'"),
        ("", "at least one language or group: got none"),
        ([], "at least one language or group: got none"),
    ):
        with pytest.raises(ValueError, match=message):
            resolve_languages(unknown)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tatoeba"
    path.mkdir()
    for name, text in {"deu": "Hallo!", "fra": "Salut !"}.items():
        (path / f"tatoeba.{name}-eng.{name}").write_text(f"{text}\n", encoding="utf-8")
        (path / f"tatoeba.{name}-eng.eng").write_text("Hello!\n", encoding="utf-8")
    (path / "test.tsv").write_text("你好！\tHello!\n", encoding="utf-8")
    return path


def test_a_folder(folder: Path) -> None:
    pairs, name = load_english_pairs([folder])
    assert name == "tatoeba" and pairs["fra"] == (["Salut !"], ["Hello!"])
    assert list(load_english_pairs([folder], "fr")[0]) == ["fra"]
    with pytest.raises(ValueError, match="expected codes out of deu, fra, got spa"):
        load_english_pairs([folder], "es")


def test_own_text_in_files_like_tatoebas_has_the_name_of_its_folder(folder: Path) -> None:
    """A card said "Tatoeba" of somebody's own sentences, because their files were named as LASER's are."""
    news = folder.rename(folder.with_name("news"))
    assert load_english_pairs([news])[1] == "news"
    release = folder / "v1"
    folder.mkdir()
    news.rename(release)
    assert load_english_pairs([release])[1] == "tatoeba"


def test_a_sample_of_each_language(tmp_path: Path) -> None:
    """As ``?size=`` has it everywhere: refused with advice that is for Python. Its name is not the benchmark's."""
    rows = [(f"Satz {number}", f"sentence {number}") for number in range(40)]
    path = tmp_path / "tatoeba"
    path.mkdir()
    for code, texts in zip(("deu", "eng"), zip(*rows)):
        (path / f"tatoeba.deu-eng.{code}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    sets, name = load_english_pairs([f"{path}?size=7&seed=3"])
    assert name == "tatoeba-7-seed3" and list(zip(*sets["deu"])) == [rows[row] for row in Sample(7, 3).places(40, "")]
    for options, words in (("seed=3", "size=N with seed=3"), ("columns=0,1", "options size, seed, once each")):
        with pytest.raises(ValueError, match=words):
            load_english_pairs([f"{path}?{options}"])


def test_the_phrasebooks_test_split() -> None:
    pairs, name = load_english_pairs(["phrasebook:de,fr?size=3"], "fr,de")
    test = parallel_phrases("fr", "en", split="test", size=3)
    assert list(pairs) == ["fra", "deu"] and name == "phrasebook-test"
    assert pairs["fra"] == (test["source"][:], test["target"][:])
    assert load_english_pairs(["phrasebook:de?size=3&split=dev"])[1] == "phrasebook-dev"
    with pytest.raises(ValueError, match="expected languages out of deu, fra: got rus; leave these out"):
        load_english_pairs(["phrasebook:de,fr?size=3"], "de,ru")


def test_files_of_which_one_side_is_english(folder: Path) -> None:
    pairs, name = load_english_pairs([f"zh-en={folder}/test.tsv", folder])
    assert list(pairs) == ["cmn", "deu", "fra"] and name == f"test.tsv+{folder.name}"
    (folder / "back.tsv").write_text("Hello!\t¡Hola!\n", encoding="utf-8")
    assert load_english_pairs([f"en-es={folder}/back.tsv"])[0] == {"spa": (["¡Hola!"], ["Hello!"])}
    for label in ("", "zh-vi=", "en-eng="):
        with pytest.raises(ValueError, match="as in de-en=PATH"):
            load_english_pairs([f"{label}{folder}/test.tsv"])


def test_codes_with_script_or_region(folder: Path) -> None:
    (folder / "pt.tsv").write_text("Olá!\tHello!\n", encoding="utf-8")
    chinese = [f"zho_{script}-eng_Latn={folder}/test.tsv" for script in ("Hans", "Hant")]
    pairs, _ = load_english_pairs([f"en-GB-pt_BR={folder}/pt.tsv?columns=1,0", *chinese])
    greeting = (["你好！"], ["Hello!"])
    assert pairs == {"por": (["Olá!"], ["Hello!"]), "cmn_Hans": greeting, "cmn_Hant": greeting}
    assert list(load_english_pairs([*chinese, folder], "zh")[0]) == ["cmn_Hans", "cmn_Hant"]
    assert list(load_english_pairs(chinese[:1], "zh")[0]) == ["cmn"]
    assert aligned_pairs(pairs) == pairs
    with pytest.raises(ValueError, match="got another for cmn_Hans"):
        load_english_pairs([chinese[0], f"en-zh_Hans={folder}/test.tsv?columns=1,0"])


def test_a_data_set_without_its_language():
    """``TatoebaEvaluator(dataset)`` failed within, with a word about hashes of columns."""
    dataset = parallel_phrases("de", "en", split="test", size=5)
    for evaluator in (TatoebaEvaluator, PrecisionEvaluator):
        with pytest.raises(
            TypeError, match="pairs must be a mapping from names: got Dataset; pass pairs={'de': dataset}"
        ):
            evaluator(dataset)


NO_DATA = ["de-en.tsv", None, ["Ein Hund.", "Ein Haus."], {"de": ["Ein Hund."]}]


@pytest.mark.parametrize("data", NO_DATA, ids=str)
@pytest.mark.parametrize("evaluator", [TatoebaEvaluator, PrecisionEvaluator, BuccEvaluator])
def test_data_of_another_kind(evaluator, data):
    """They failed within: "not enough values to unpack", or "'list' object has no attribute 'source'"."""
    options = {"threshold": 1.0} if evaluator is BuccEvaluator else {}
    with pytest.raises((TypeError, ValueError), match="a mapping from names|must hold two lists|a Bucc"):
        evaluator(data, **options)


@pytest.mark.parametrize("data", NO_DATA, ids=str)
def test_pools_and_sets_of_another_kind(data):
    """``RerankingEvaluator("file")`` took the letters of a path for pools, and failed when it evaluated."""
    with pytest.raises(TypeError, match="pools must be a list of CandidatePool: got"):
        RerankingEvaluator(data)
    with pytest.raises(TypeError, match="sets must be a list of RetrievalSet: got"):
        RetrievalEvaluator(data)


def test_data_sets_and_lists_are_the_same():
    datasets = {
        code: Dataset.from_dict({"source": source, "target": target}) for code, (source, target) in PAIRS.items()
    }
    assert TatoebaEvaluator(datasets).pairs == TatoebaEvaluator(PAIRS).pairs


def test_the_table_has_percentages_of_both_directions():
    table = TatoebaEvaluator(PAIRS).evaluate(TableModel(perfect(PAIRS))).table().splitlines()
    assert [line.split() for line in table if line[0] not in "l-"] == [
        [label, "100.0", "100.0", "100.0"] for label in ("ara", "deu", "tha", "all")
    ]


def test_real_test_sets(real_data: Path) -> None:
    """The 28 languages are those of the 36 that have 1,000 pairs."""
    some = load_english_pairs([real_data / "tatoeba"], "te,jv")[0]
    assert {code: len(source) for code, (source, _) in some.items()} == {"tel": 234, "jav": 205}
    evaluator = TatoebaEvaluator(load_english_pairs([real_data / "tatoeba"])[0])
    assert "|languages:xtreme36|" in evaluator.identity
    assert set(evaluator.groups) == {"xnli14", "full28", "xtreme36"}
    sizes = {code: len(source) for code, (source, _) in evaluator.pairs.items()}
    assert sum(sizes.values()) == 31692
    assert tuple(code for code, size in sizes.items() if size == 1000) == TATOEBA_GROUPS["full28"]
