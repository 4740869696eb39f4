"""An exam of encoders: which is better, for which language, by how much, and can the difference be trusted?

- ``data``: what they are examined on, and samples of it
- ``tasks``: what each task notes of every item, and its measures
- ``compare``: intervals, paired tests, and the order that they allow
- ``run``: :func:`examine`: all tasks of all models, resumed where it was stopped
- ``page``: the result as one page of HTML
"""

from st_xling.evaluation.exam.data import ExamData, load_exam_data
from st_xling.evaluation.exam.run import Examinee, ExamReport, examine, parse_examinees

__all__ = [
    "ExamData",
    "ExamReport",
    "Examinee",
    "examine",
    "load_exam_data",
    "parse_examinees",
]
