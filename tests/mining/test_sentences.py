"""Sentences of a document: paragraphs, wrapped lines, abbreviations, scripts without spaces."""

import pytest

from st_xling.mining.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "language", "sentences"),
    [
        ("Er kam am 3. Mai. Sie blieb.\nEs war spät.", "de", ["Er kam am 3. Mai.", "Sie blieb.", "", "Es war spät."]),
        ("Er kam am 3. Mai. Sie blieb.", "deu_Latn", ["Er kam am 3. Mai.", "Sie blieb."]),
        ("他走了。为什么？\n\n我不知道！", "zh-CN", ["他走了。", "为什么？", "", "我不知道！"]),
        ("他走\n了，Apple\n 手机。\n\n好。", "zh", ["他走了，Apple 手机。", "", "好。"]),
        ("वह आया। उसने कहा।\n", "hi", ["वह आया।", "उसने कहा।"]),
        ("One. Two.\n \n\n\tThree\nlines.\n", None, ["One.", "Two.", "", "Three lines."]),
        (" \n", "en", []),
        ("今天很冷。3个人来了。我们走吧。", "zh", ["今天很冷。", "3个人来了。", "我们走吧。"]),
        ("他走了……大家都很难过。我……我不知道。", "zh-TW", ["他走了……", "大家都很难过。", "我……我不知道。"]),
        ("今日は寒い。3人来た。", "ja", ["今日は寒い。", "3人来た。"]),
        ("ខ្ញុំទៅផ្សារ។ គាត់នៅផ្ទះ។ចប់៕", "km", ["ខ្ញុំទៅផ្សារ។", "គាត់នៅផ្ទះ។", "ចប់៕"]),
        ("བཀྲ་ཤིས་བདེ་ལེགས། ང་བོད་ནས་ཡིན།", "bo", ["བཀྲ་ཤིས་བདེ་ལེགས།", "ང་བོད་ནས་ཡིན།"]),
        ("M. Dupont est né le 1er janv. 1990. Il vit.", "fr", ["M. Dupont est né le 1er janv. 1990.", "Il vit."]),
        ("En 30 av. J.-C., fig. 3. Oui.", "fr", ["En 30 av. J.-C., fig. 3.", "Oui."]),
        ("La Dña. García vino. 3 fueron.", "es", ["La Dña. García vino.", "3 fueron."]),
        ("Ул. им. Ленина, рис. 3. Да.", "ru", ["Ул. им. Ленина, рис. 3.", "Да."]),
        ("He was old. 3 men came.", "en", ["He was old.", "3 men came."]),
        ("Die Ver-\nwaltung kam.\n\nVor- und\nNachspiel.", "de", ["Die Verwaltung kam.", "", "Vor- und Nachspiel."]),
        ("Die Ver-\n\nwaltung, Nord-\nsüd, Nord-süd.\n\nA", "de", ["Die Verwaltung, Nord-süd, Nord-süd.", "", "A"]),
    ],
)
def test_sentences_of_a_text(text: str, language: str | None, sentences: list[str]) -> None:
    """Chinese sentences before a number, Khmer and Tibetan ones were not split; French ones were, at abbreviations."""
    assert split_sentences(text, language) == sentences
