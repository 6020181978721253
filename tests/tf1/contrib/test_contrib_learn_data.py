"""`tf.contrib.learn.datasets` and `preprocessing`: digits and words as TF 1.15 gave them."""

from __future__ import annotations

import gzip
import struct
import types

import numpy as np
import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.legacy import importing

learn = tf.contrib.learn


@pytest.fixture
def digits(tmp_path):
    """A folder with 24 training images, whose labels are 0 to 9 in turn, and 6 for tests."""
    for name, count in (("train", 24), ("t10k", 6)):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = np.repeat(labels, 784).astype(np.uint8)
        with gzip.open(tmp_path / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        with gzip.open(tmp_path / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">II", 2049, count) + labels.tobytes())
    return str(tmp_path)


def test_a_tutorials_digits_come_in_the_order_of_tf_1_15(digits):
    source = "from tensorflow.examples.tutorials.mnist import input_data\n"
    program = types.ModuleType("program")
    importing.execute(compile(source, "program.py", "exec"), program)
    found = program.input_data.read_data_sets(digits, validation_size=4, seed=3)
    batches = [found.train.next_batch(8)[1].tolist() for _ in range(3)]
    # What TF 1.15 gave with this seed; the third batch goes on in the next epoch.
    assert batches == [[8, 6, 5, 1, 8, 0, 0, 1], [9, 6, 3, 5, 3, 2, 7, 9], [4, 2, 7, 4, 8, 6, 1, 0]]
    assert found.train.epochs_completed == 1
    assert (found.train.num_examples, found.validation.num_examples) == (20, 4)


def test_images_are_rows_of_pixels_from_0_to_1(digits):
    found = learn.datasets.mnist.read_data_sets(digits, one_hot=True, validation_size=0)
    images, labels = found.test.next_batch(6, shuffle=False)
    assert images.shape == (6, 784)
    assert images.dtype == np.float32
    np.testing.assert_allclose(images[:, 0], np.arange(6) / 255.0)
    assert labels.tolist() == np.eye(10)[:6].tolist()


def test_images_may_stay_as_they_are(digits):
    found = learn.datasets.mnist.read_data_sets(
        digits, dtype=tf.uint8, reshape=False, validation_size=0
    )
    assert found.train.images.shape == (24, 28, 28, 1)
    assert found.train.images.dtype == np.uint8


def test_more_validation_images_than_there_are_is_an_error(digits):
    with pytest.raises(ValueError, match=r"between 0 and 24\. Received: 5000"):
        learn.datasets.mnist.read_data_sets(digits)


def test_a_file_of_something_else_is_an_error(digits):
    with (
        open(f"{digits}/t10k-labels-idx1-ubyte.gz", "rb") as file,
        pytest.raises(ValueError, match="Invalid magic number 2049 in MNIST image file"),
    ):
        learn.datasets.mnist.extract_images(file)


def test_the_table_of_data_sets_has_loaders_that_take_a_folder(digits):
    with pytest.raises(ValueError, match=r"between 0 and 24\. Received: 5000"):
        learn.datasets.DATASETS["mnist"](digits)


def test_fake_data_needs_no_files():
    found = learn.datasets.mnist.read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = found.train.next_batch(2, fake_data=True)
    assert np.shape(images) == (2, 784)
    assert labels == [[1] + [0] * 9] * 2


def test_csv_files_with_and_without_a_header(tmp_path):
    lines = "1.5,2.5,0\n3.5,4.5,1\n"
    (tmp_path / "with.csv").write_text("2,2,a,b\n" + lines)
    (tmp_path / "without.csv").write_text(lines)
    base = learn.datasets.base
    first = base.load_csv_with_header(str(tmp_path / "with.csv"), int, float)
    second = base.load_csv_without_header(str(tmp_path / "without.csv"), int, float)
    for found in (first, second):
        assert found.data.tolist() == [[1.5, 2.5], [3.5, 4.5]]
        assert found.target.tolist() == [0, 1]


def test_shrink_csv_keeps_each_nth_line(tmp_path):
    (tmp_path / "all.csv").write_text("0,0\n1,1\n2,2\n")
    learn.datasets.base.shrink_csv(str(tmp_path / "all.csv"), 2)
    assert (tmp_path / "all_small.csv").read_text().split() == ["0,0", "2,2"]


def test_a_file_that_is_there_is_not_loaded(tmp_path):
    (tmp_path / "here").write_text("x")
    path = learn.datasets.base.maybe_download("here", str(tmp_path), "no://address")
    assert path == str(tmp_path / "here")


def test_data_sets_that_are_gone_say_where_they_are():
    with pytest.raises(UnsupportedError, match=r"tf\.keras\.datasets\.boston_housing"):
        learn.datasets.load_dataset("boston")
    with pytest.raises(UnsupportedError, match="tensorflow-datasets"):
        learn.datasets.load_dataset("dbpedia")
    with pytest.raises(ValueError, match="not found: nosuch"):
        learn.datasets.load_dataset("nosuch")


TEXTS = ["I don't like HTMLFiles", "you like it", "it is what it is"]


def test_words_are_numbered_as_tf_1_15_did(tmp_path):
    words = learn.preprocessing.VocabularyProcessor(4)
    rows = np.array(list(words.fit_transform(TEXTS)))
    assert rows.tolist() == [[1, 2, 3, 4], [6, 3, 7, 0], [7, 8, 9, 7]]
    assert list(words.transform(["never like"])) == [pytest.approx([0, 3, 0, 0])]
    assert next(words.reverse(rows[1:])) == "you like it <UNK>"
    words.save(str(tmp_path / "vocab"))
    restored = learn.preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocab"))
    assert len(restored.vocabulary_) == 10


def test_rare_words_are_unknown_and_frequent_ones_come_first():
    words = learn.preprocessing.VocabularyProcessor(3, min_frequency=1)
    rows = [row.tolist() for row in words.fit_transform(TEXTS)]
    assert rows == [[0, 0, 3], [0, 3, 1], [1, 2, 0]]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (False, [[1, 0], [2, 0], [1, 1], [2, 0], [0, 1]]),
        (True, [[1, 0], [3, 0], [1, 2], [3, 1], [0, 2]]),
    ],
)
def test_categories_are_numbered_as_tf_1_15_did(share, expected):
    from estimator2strategy.tf1.contrib.learn.python.learn.preprocessing import categorical

    rows = [["a", 1.0], ["b", float("nan")], ["a", 2.0], ["b", "a"], ["c", 2.0]]
    processor = categorical.CategoricalProcessor(min_frequency=1, share=share)
    assert [row.tolist() for row in processor.fit_transform(rows)] == expected


def test_a_failed_call_is_tried_again():
    tries = []

    @learn.datasets.base.retry(0.001, 0.004, is_retriable=lambda error: "again" in str(error))
    def fail(message):
        tries.append(message)
        raise OSError(message)

    with pytest.raises(OSError, match="again"):
        fail("again")
    assert len(tries) == 4
    with pytest.raises(OSError, match="at once"):
        fail("at once")
    assert len(tries) == 5
    with pytest.raises(ValueError, match="factor must be >= 1"):
        learn.datasets.base.retry(1, 2, factor=0.5)


def test_a_file_is_fetched_from_a_url(tmp_path):
    source = tmp_path / "source"
    source.write_text("data")
    fetched, _ = learn.datasets.base.urlretrieve_with_retry(source.as_uri(), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_text() == "data"
    assert fetched == str(tmp_path / "copy")
