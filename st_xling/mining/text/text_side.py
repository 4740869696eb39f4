"""One of the two texts that are mined: surveyed, readable by row, its duplicates folded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from st_xling.mining.text.distinct_text import DistinctText
from st_xling.mining.text.mining_text import Files, MiningText, read_rows
from st_xling.mining.text.survey import TextSurvey, survey_text


@dataclass(frozen=True, eq=False)
class TextSide:
    """A text by row and by distinct sentence.

    Attributes:
        name: ``"source"`` or ``"target"``.
        text: Its sentences by row.
        survey: What it holds.
    """

    name: str
    text: MiningText
    survey: TextSurvey

    @classmethod
    def open(
        cls, name: str, files: Files, *, format: str = "lines", errors: str = "strict", progress: bool = False
    ) -> TextSide:
        """Read a text once, to find all its faults and where its lines begin.

        Args:
            name: ``"source"`` or ``"target"``.
            files: As for :class:`~st_xling.mining.MiningText`.
            format: As for :class:`~st_xling.mining.MiningText`.
            errors: As for :class:`~st_xling.mining.MiningText`.
            progress: Show a bar on stderr.
        Raises:
            ParallelTextError: For faulty lines, together; for a text without lines.
        """
        survey = survey_text(files, format=format, errors=errors, blank="keep", progress=progress)
        return cls(name, MiningText(files, format=format, errors=errors), survey)

    @cached_property
    def distinct(self) -> DistinctText:
        """The sentences that are mined."""
        return DistinctText(self.text, ", ".join(self.text.files), self.survey.blank_rows)

    @property
    def signature(self) -> str:
        return f"{self.name}:{','.join(self.survey.files)}@{self.survey.sha256[:8]}"

    def ids(self, place: int) -> list[str]:
        """Ids of all rows with a distinct sentence."""
        return [self.text.id(row) for row in self.distinct.members(place)]

    def check_ids(self) -> None:
        """Raise if ids cannot be joined by commas."""
        if self.survey.format == "lines":
            return
        for row in read_rows(self.text.files, format=self.survey.format, errors=self.survey.errors):
            if row.id is not None and "," in row.id:
                raise ValueError(
                    f"{row.path}:{row.line}: expected ids without commas, which join ids in TSV, got {row.id!r}; write "
                    "JSON lines instead (--format jsonl)."
                )
