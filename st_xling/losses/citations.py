"""BibTeX of the papers that the objectives come from; model cards print it."""

YANG_2019 = """
@inproceedings{yang2019additive,
    title = {Improving Multilingual Sentence Embedding using Bidirectional Dual Encoder with Additive Margin Softmax},
    author = {Yang, Yinfei and Hernandez Abrego, Gustavo and Yuan, Steve and Guo, Mandy and Shen, Qinlan and Cer, Daniel
              and Sung, Yun-hsuan and Strope, Brian and Kurzweil, Ray},
    booktitle = {Proceedings of IJCAI},
    year = {2019},
}
"""

AMBER = """
@inproceedings{hu2021explicit,
    title = {Explicit Alignment Objectives for Multilingual Bidirectional Encoders},
    author = {Hu, Junjie and Johnson, Melvin and Firat, Orhan and Siddhant, Aditya and Neubig, Graham},
    booktitle = {Proceedings of NAACL},
    year = {2021},
}
"""

DAP = """
@inproceedings{li2023dap,
    title = {Dual-Alignment Pre-training for Cross-lingual Sentence Embedding},
    author = {Li, Ziheng and Huang, Shaohan and Zhang, Zihan and Deng, Zhi-Hong and Lou, Qiang and Huang, Haizhen and
              Jiao, Jian and Wei, Furu and Deng, Weiwei and Zhang, Qi},
    booktitle = {Proceedings of ACL},
    year = {2023},
}
"""

HU_2023 = """
@inproceedings{hu2023language,
    title = {Language Agnostic Multilingual Information Retrieval with Contrastive Learning},
    author = {Hu, Xiyang and Chen, Xinchi and Qi, Peng and Kong, Deguang and Liu, Kunlun and Wang, William Yang and
              Huang, Zhiheng},
    booktitle = {Findings of ACL},
    year = {2023},
}
"""

HUANG_2023 = """
@article{huang2023crosslingual,
    title = {Cross-lingual Sentence Embedding for Low-resource Chinese-Vietnamese Based on Contrastive Learning},
    author = {Huang, Yuxin and Liang, Yin and Wu, Zhaoyuan and Zhu, Enchang and Yu, Zhengtao},
    journal = {ACM Transactions on Asian and Low-Resource Language Information Processing},
    volume = {22},
    number = {6},
    year = {2023},
}
"""
