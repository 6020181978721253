"""`tf.contrib.learn.preprocessing` of TF 1.15: words as numbers."""

from __future__ import annotations

import collections
import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("learn.preprocessing", globals())

TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for value in iterator:
        yield TOKENIZER_RE.findall(value)


class CategoricalVocabulary:
    """Numbers for categories, such as words; 0 is what is not known.

    Args:
        unknown_token: The token that stands for the number 0.
        support_reverse: True if `reverse` will be asked.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True):
        self._unknown_token = unknown_token
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        self._reverse_mapping: list[Any] = [unknown_token]
        self._freq: dict[Any, int] = collections.defaultdict(int)
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """From now on new categories are unknown; or no longer so."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """The number of a category, which is new unless the vocabulary is frozen."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._mapping[category] = len(self._mapping)
            self._reverse_mapping.append(category)
        return self._mapping[category]

    def add(self, category: Any, count: int = 1) -> None:
        """Counts a category, `count` times."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps what was counted more than `min_frequency` times, and less than `max_frequency`.

        The numbers then start with the most frequent; ties are in the order of the categories.
        """
        by_name = sorted(self._freq.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        by_count = sorted(by_name, key=lambda item: item[1], reverse=True)
        kept = [
            category
            for category, count in by_count
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._reverse_mapping = [self._unknown_token, *kept]
        self._mapping = {category: place for place, category in enumerate(self._reverse_mapping)}
        # The first of all counts, as many as were kept: what TF 1.15 left there.
        self._freq = dict(by_count[: len(kept)])

    def reverse(self, class_id: int) -> Any:
        """The category that has a number.

        Raises:
            ValueError: The vocabulary was made without `support_reverse`.
        """
        if not self._support_reverse:
            raise ValueError(
                "This vocabulary wasn't initialized with support_reverse to support reverse() "
                "function."
            )
        return self._reverse_mapping[class_id]


class CategoricalProcessor:
    """Rows of categories as rows of numbers; what is not a number (NaN) is not known.

    Args:
        min_frequency: A category must be in the rows more often.
        share: True if all columns have one vocabulary.
        vocabularies: A `CategoricalVocabulary` for each column, to go on with.
    """

    def __init__(
        self,
        min_frequency: int = 0,
        share: bool = False,
        vocabularies: list[CategoricalVocabulary] | None = None,
    ):
        self.min_frequency = min_frequency
        self.share = share
        self.vocabularies_ = vocabularies

    def freeze(self, freeze: bool = True) -> None:
        """Ends the learning of all vocabularies, or allows it again."""
        for vocabulary in self.vocabularies_ or ():
            vocabulary.freeze(freeze)

    def fit(self, x: Iterable[Iterable[Any]], unused_y: Any = None) -> CategoricalProcessor:
        """Learns the categories of each column of `x`, and no others after that."""
        for row in x:
            row = list(row)
            if self.vocabularies_ is None:
                own = CategoricalVocabulary()
                self.vocabularies_ = [own if self.share else CategoricalVocabulary() for _ in row]
            for vocabulary, value in zip(self.vocabularies_, row, strict=False):
                if not _is_nan(value):
                    vocabulary.add(value)
        if self.min_frequency > 0:
            for vocabulary in self.vocabularies_ or ():
                vocabulary.trim(self.min_frequency)
        self.freeze()
        return self

    def fit_transform(
        self, x: Iterable[Iterable[Any]], unused_y: Any = None
    ) -> Iterator[np.ndarray]:
        """`fit`, then `transform`."""
        return self.fit(x).transform(x)

    def transform(self, x: Iterable[Iterable[Any]]) -> Iterator[np.ndarray]:
        """The numbers of each row, int64."""
        self.freeze()
        for row in x:
            known = zip(self.vocabularies_ or (), row, strict=False)
            yield np.array([0 if _is_nan(v) else words.get(v) for words, v in known], np.int64)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


class VocabularyProcessor:
    """Texts as rows of word numbers.

    Args:
        max_document_length: The length of a row: longer texts are cut, shorter ones end in zeros.
        min_frequency: A word must be in the texts more often.
        vocabulary: A `CategoricalVocabulary` to go on with.
        tokenizer_fn: Takes an iterable of texts, gives the words of each; `tokenizer` if None.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[Any]], Iterable[Iterable[Any]]] | None = None,
    ):
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of `raw_documents`, and no others after that."""
        for tokens in self._tokenizer(raw_documents):
            for token in tokens:
                self.vocabulary_.add(token)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(
        self, raw_documents: Iterable[Any], unused_y: Any = None
    ) -> Iterator[np.ndarray]:
        """`fit`, then `transform`."""
        return self.fit(raw_documents).transform(raw_documents)

    def transform(self, raw_documents: Iterable[Any]) -> Iterator[np.ndarray]:
        """The row of each text, int64 of shape (max_document_length,)."""
        for tokens in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for place, token in enumerate(list(tokens)[: self.max_document_length]):
                row[place] = self.vocabulary_.get(token)
            yield row

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """The words of each row, joined by spaces."""
        for document in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in document)

    def save(self, filename: str) -> None:
        """Pickles this processor to a file."""
        with tf.io.gfile.GFile(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """The object that `save` wrote."""
        with tf.io.gfile.GFile(filename, "rb") as file:
            return cast(VocabularyProcessor, pickle.loads(file.read()))
