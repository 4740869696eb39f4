"""Files → aligned pairs and pools: SQuAD's form, labelled pairs, retrieval sets, and what ``--data`` may say."""
