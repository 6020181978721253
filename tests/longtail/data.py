"""Tiny made data, in the forms that the programs of `rows.py` read."""

from __future__ import annotations

import gzip
import pickle
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np


def mnist(folder: str, train: int = 5400, test: int = 64, zipped: bool = True) -> None:
    """Made digits in MNIST's four files; a label can be told from its picture's brightness."""
    random = np.random.RandomState(7)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, count in (("train", train), ("t10k", test)):
        labels = random.randint(0, 10, count).astype(np.uint8)
        images = random.randint(0, 25, (count, 28, 28)) + 23 * labels[:, None, None]
        head = struct.pack(">4i", 2051, count, 28, 28)
        _ubyte(
            folder, f"{name}-images-idx3-ubyte", head + images.astype(np.uint8).tobytes(), zipped
        )
        head = struct.pack(">2i", 2049, count)
        _ubyte(folder, f"{name}-labels-idx1-ubyte", head + labels.tobytes(), zipped)


def _ubyte(folder: str, name: str, content: bytes, zipped: bool) -> None:
    path = Path(folder) / (f"{name}.gz" if zipped else name)
    path.write_bytes(gzip.compress(content) if zipped else content)


def mnist_in(folder: str, *empty: str, **options: bool | int) -> Callable[[], None]:
    """Makes MNIST in a folder, and folders that the program expects."""

    def make() -> None:
        for path in empty:
            Path(path).mkdir(parents=True, exist_ok=True)
        mnist(folder, **options)

    return make


def records(path: str, examples: Iterable[Mapping[str, object]]) -> None:
    """A TFRecord file of `tf.train.Example`s; a list of lists becomes a SequenceExample's."""
    import tensorflow as tf

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(path) as writer:
        for features in examples:
            sequences = {
                k: v
                for k, v in features.items()
                if isinstance(v, list) and v and isinstance(v[0], list)
            }
            plain = {k: _feature(v) for k, v in features.items() if k not in sequences}
            context = tf.train.Features(feature=plain)
            if not sequences:
                writer.write(tf.train.Example(features=context).SerializeToString())
                continue
            lists = {
                k: tf.train.FeatureList(feature=map(_feature, v)) for k, v in sequences.items()
            }
            whole = tf.train.SequenceExample(
                context=context, feature_lists=tf.train.FeatureLists(feature_list=lists)
            )
            writer.write(whole.SerializeToString())


def _feature(value: object) -> object:
    import tensorflow as tf

    values = value if isinstance(value, list) else [value]
    if isinstance(values[0], (bytes, str)):
        coded = [v.encode() if isinstance(v, str) else v for v in values]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=coded))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def mnist_records() -> None:
    random = np.random.RandomState(3)
    for name in ("train", "test"):
        digits = (
            {"image_raw": random.randint(0, 255, 784).astype(np.uint8).tobytes(), "label": i % 10}
            for i in range(64)
        )
        records(f"data/{name}.tfrecords", digits)


def spoken() -> None:
    """Frames of 39 channels, and letters."""
    random = np.random.RandomState(5)
    letters = "abcdefgh"
    Path("vocab.txt").write_text("\n".join(letters))
    for name in ("train", "valid"):
        records(
            f"{name}.tfrecord",
            (
                {
                    "inputs": random.standard_normal((16 + i, 39)).tolist(),
                    "labels": [[letters[(i + j) % 8]] for j in range(3 + i % 3)],
                }
                for i in range(12)
            ),
        )


CENSUS = (
    ("39", "State-gov", "77516", "Bachelors", "13", "Never-married", "Adm-clerical",
     "Not-in-family", "White", "Male", "2174", "0", "40", "United-States", "<=50K"),
    ("52", "Private", "209642", "HS-grad", "9", "Married-civ-spouse", "Exec-managerial",
     "Husband", "Black", "Female", "0", "0", "45", "Mexico", ">50K"),
    ("28", "Private", "338409", "Masters", "14", "Divorced", "Sales",
     "Wife", "Other", "Female", "0", "187", "30", "Cuba", ">50K"),
)  # fmt: skip


def census(
    *paths: str, count: int = 64, header: bool = False, space: str = ", "
) -> Callable[[], None]:
    """Rows of the adult census: three people, each a little older in each row."""

    def make() -> None:
        lines = [space.join(f"c{i}" for i in range(15))] * header
        for i in range(count):
            person = CENSUS[i * 7 % 3]
            lines.append(space.join((str(int(person[0]) + i % 11), *person[1:])))
        for path in paths:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text("\n".join(lines) + "\n")

    return make


def amazon() -> None:
    """Histories of bought items, for the CTR models."""
    random = np.random.RandomState(11)
    census("data/census/train.csv", "data/census/valid.csv", header=True, space=",")()
    Path("data/amazon").mkdir(parents=True, exist_ok=True)
    with open("data/amazon/remap.pkl", "wb") as file:
        for part in ({}, [i % 5 for i in range(40)], (10, 40, 5, 64)):
            pickle.dump(part, file, protocol=2)
    for step in ("train", "valid"):
        records(
            f"data/amazon/amazon_{step}.tfrecords",
            (
                {
                    "reviewer_id": i,
                    "hist_item_list": (seen := random.randint(0, 40, 2 + i % 5).tolist()),
                    "hist_category_list": [item % 5 for item in seen],
                    "hist_length": len(seen),
                    "item": i % 40,
                    "item_category": i % 5,
                    "target": i % 2,
                }
                for i in range(64)
            ),
        )


def frappe() -> None:
    amazon()
    random = np.random.RandomState(13)
    Path("data/frappe").mkdir(parents=True, exist_ok=True)
    for step in ("train", "valid", "test", "validation"):
        lines = [
            " ".join(
                [str(1 if i % 3 else -1), *(f"{j * 500 + random.randint(40)}:1" for j in range(10))]
            )
            for i in range(96)
        ]
        Path(f"data/frappe/frappe.{step}.libfm").write_text("\n".join(lines) + "\n")


def openwebtext() -> None:
    """Tokens for GPT-2, and a model of two small layers."""
    import json

    params = json.loads(Path("117M.json").read_text())
    params |= {
        "n_vocab": 50257, "n_embd": 8, "n_head": 2, "n_layer": 2, "n_ctx": 16, "warmup_steps": 5,
        "train_batch_size": 2, "eval_batch_size": 2, "train_steps": 10, "eval_steps": 2,
        "max_steps": 9, "iterations": 1, "data_path": "data", "model_path": "model",
    }  # fmt: skip
    Path("tiny.json").write_text(json.dumps(params))
    random = np.random.RandomState(17)
    for number in range(100):
        texts = ({"hash": str(i), "text": random.randint(0, 50257, 12).tolist()} for i in range(8))
        records(f"data/openwebtext-newspaper_{number}.tfrecords", texts)


def porto() -> None:
    """Insurance rows, with the columns that the DeepFM of 2017 names."""
    import csv

    names = [f"ps_reg_0{i}" for i in (1, 2, 3)] + [f"ps_car_{i}" for i in (12, 13, 14, 15)]
    names += [f"ps_ind_{i:02}_bin" for i in (6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18)]
    names += [f"ps_ind_{i:02}_cat" for i in (2, 4, 5)] + [
        f"ps_car_{i:02}_cat" for i in range(1, 12)
    ]
    names += [f"ps_calc_{i:02}" for i in range(1, 15)] + [f"ps_calc_{i}_bin" for i in range(15, 21)]
    names += ["ps_ind_01", "ps_ind_03", "ps_ind_14", "ps_ind_15", "ps_car_11"]
    random = np.random.RandomState(19)
    Path("data").mkdir(exist_ok=True)
    for path, head in (("data/train.csv", ["id", "target"]), ("data/test.csv", ["id"])):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(head + names)
            for i in range(90):
                values = [
                    round(random.rand(), 3)
                    if "reg" in name or name[-3:] in ("_12", "_13", "_14", "_15")
                    else random.randint(3)
                    for name in names
                ]
                writer.writerow([i, int(i % 3 == 0)][: len(head)] + values)


def timit() -> None:
    """Sound, and what is said in it; the program asks for files of 93638 and 62 bytes."""
    import wave

    random = np.random.RandomState(29)
    with wave.open("LDC93S1.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(random.randint(-9000, 9000, 46797).astype(np.int16).tobytes())
    Path("LDC93S1.txt").write_text(
        "0 46797 She had your dark suit in greasy wash water all year.\n"
    )


def named_entities() -> None:
    """What `build_data.py` of sequence_tagging leaves."""
    Path("data/words.txt").write_text(
        "\n".join(["jean", "pierre", "lives", "in", "$UNK$", "$NUM$"])
    )
    Path("data/tags.txt").write_text("\n".join(["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "B-ORG"]))
    Path("data/chars.txt").write_text("\n".join("abcdefghijklmnopqrstuvwxyzJPNY"))
    vectors = np.random.RandomState(31).standard_normal((6, 300))
    np.savez_compressed("data/glove.6B.300d.trimmed.npz", embeddings=vectors)
    text = "Jean B-PER\nPierre I-PER\nlives O\nin O\nNew B-LOC\nYork I-LOC\n\n"
    Path("data/test.txt").write_text(text * 12)


def tiny_bert(**more: object) -> None:
    """A BERT of one layer, and its vocabulary of 17 words."""
    import json

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", "lives", "in"]
    Path("vocab.txt").write_text("\n".join(words) + "\n")
    config = {
        "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "hidden_size": 8, "initializer_range": 0.02, "intermediate_size": 16,
        "max_position_embeddings": 32, "num_attention_heads": 2, "num_hidden_layers": 1,
        "type_vocab_size": 2, "vocab_size": len(words), **more,
    }  # fmt: skip
    Path("bert_config.json").write_text(json.dumps(config))
    Path("out").mkdir(exist_ok=True)


def bert_with_relations() -> None:
    """A BERT, and sentences of classes 0 and 1; only the test file has a header."""
    tiny_bert()
    Path("re").mkdir()
    texts = [f"{a} lives in {b}" for a, b in zip("abcdefgh", "cdefghij", strict=True)]
    tagged = [f"{text}\t{i % 2}" for i, text in enumerate(texts)]
    Path("re/train.tsv").write_text("\n".join(tagged * 3) + "\n")
    Path("re/dev.tsv").write_text("\n".join(tagged[:6]) + "\n")
    test = [f"{i}\t{text}" for i, text in enumerate(texts[:6])]
    Path("re/test.tsv").write_text("\n".join(["index\tsentence", *test]) + "\n")


def bert_with_pairs() -> None:
    """An ALBERT that shares its layers, and pairs of sentences with a header."""
    tiny_bert(embedding_size=4, num_hidden_layers=2, ln_type="postln")
    Path("pairs").mkdir()
    pairs = [
        f"{a} lives in b\t{b} lives\t{i % 2}"
        for i, (a, b) in enumerate(zip("abcdefgh", "cdefghij", strict=True))
    ]
    for part, count in (("train", 24), ("dev", 6), ("test", 6)):
        lines = ["one\tother\tlabel", *(pairs * 3)[:count]]
        Path(f"pairs/{part}.txt").write_text("\n".join(lines) + "\n")


def bert_with_queries() -> None:
    """A BERT, and two queries with four documents each, as ids of words."""
    tiny_bert()
    for name, count in (("train", 48), ("dev", 8), ("eval", 8)):
        records(
            f"queries/dataset_{name}.tf",
            (
                {
                    "query_ids": [2, *(5 + (i + j) % 12 for j in range(3)), 3],
                    "doc_ids": [*(5 + (i * 5 + j) % 12 for j in range(2 + i % 3)), 3],
                    "label": int(i % 4 == 1),
                }
                for i in range(count)
            ),
        )
        lines = [f"{i // 4}\t{i:08}" for i in range(count)]
        Path(f"queries/query_doc_ids_{name}.txt").write_text("\n".join(lines) + "\n")


def bert_with_sentences() -> None:
    """A BERT, and sentences whose words it shall rate."""
    tiny_bert()
    Path("sentences.txt").write_text("a lives in b\nc lives\nin d lives e\n")


def tweets() -> None:
    """Lines of letters for a character model."""
    lines = [f"We will make a b c great again, number {i}! " * 4 for i in range(12)]
    Path("data").mkdir(exist_ok=True)
    Path("data/trump_tweets.txt").write_text("\n".join(lines) + "\n")


def videos() -> None:
    """Features of videos, all alike: the program's queue shuffles them."""
    same = {"id": "v", "labels": [1, 3], "mean_rgb": [i / 10 - 0.3 for i in range(8)]}
    records("video/train.tfrecord", [same] * 64)


def facades() -> None:
    """Pictures of two halves, the input's and the target's."""
    from PIL import Image

    random = np.random.RandomState(37)
    Path("facades").mkdir()
    for i in range(3):
        pixels = random.randint(0, 255, (32, 64, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(f"facades/{i}.png")


def translations() -> None:
    """Word ids of two languages, as the transformer's `check_tiny` has them."""
    folder = Path("data/processed_tiny_kor_eng")
    folder.mkdir(parents=True)
    special = ["<pad>", "<unk>", "<s>", "</s>"]
    for side in ("source", "target"):
        words = [*special, *(f"{side[0]}{i}" for i in range(20))]
        (folder / f"{side}_vocab").write_text("\n".join(words) + "\n")
    for part, count in (("train", 24), ("test", 6)):
        for side, start in (("enc", ""), ("dec", "2 ")):
            ids = [
                start + " ".join(str(4 + (i * 3 + j) % 20) for j in range(5)) for i in range(count)
            ]
            ids = [line + " 3" * (side == "dec") for line in ids]
            (folder / f"{part}_ids.{side}").write_text("\n".join(ids) + "\n")


def one_word_vector() -> None:
    """A GloVe file; a program draws vectors for the words that it lacks."""
    Path("data/glove").mkdir(parents=True)
    Path("data/glove/glove.6B.50d.txt").write_text("word" + " 0.5" * 50 + "\n")


def sentence_pieces() -> None:
    """Pieces of sentences in two languages, and their vocabulary."""
    folder = Path("iwslt2016/segmented")
    folder.mkdir(parents=True)
    words = ["<pad>", "<unk>", "<s>", "</s>", *(f"\u2581w{i}" for i in range(20))]
    (folder / "bpe.vocab").write_text("".join(f"{word}\t0\n" for word in words))
    for part, count in (("train", 24), ("eval", 6)):
        for side, pace in (("de", 3), ("en", 5)):
            lines = [
                " ".join(words[4 + (i * pace + j) % 20] for j in range(5)) for i in range(count)
            ]
            (folder / f"{part}.{side}.bpe").write_text("\n".join(lines) + "\n")
    Path("iwslt2016/prepro").mkdir()
    Path("iwslt2016/prepro/eval.en").write_text("w1 w2 w3\n" * 6)


def sessions() -> None:
    """What was clicked, and then, as SR-GNN's `preprocess.py` leaves it."""
    random = np.random.RandomState(41)
    folder = Path("../datasets/sample")
    folder.mkdir()
    for part, count in (("train", 80), ("test", 24)):
        clicks = [random.randint(1, 310, 2 + i % 5).tolist() for i in range(count)]
        with open(folder / f"{part}.txt", "wb") as file:
            pickle.dump((clicks, random.randint(1, 310, count).tolist()), file, protocol=2)


def bert_with_acceptability() -> None:
    """A BERT, and sentences that are in order or not, as CoLA has them."""
    tiny_bert()
    Path("cola").mkdir()
    texts = [f"{a} lives in {b}" for a, b in zip("abcdefgh", "cdefghij", strict=True)]
    tagged = [f"made\t{i % 2}\t*\t{text}" for i, text in enumerate(texts)]
    Path("cola/train.tsv").write_text("\n".join(tagged * 3) + "\n")
    Path("cola/dev.tsv").write_text("\n".join(tagged[:6]) + "\n")
    test = [f"{i}\t{text}" for i, text in enumerate(texts[:6])]
    Path("cola/test.tsv").write_text("\n".join(["index\tsentence", *test]) + "\n")


def equal_digits() -> None:
    """60000 times the same digit: the program's queue shuffles them."""
    Path("data/mnist").mkdir(parents=True)
    digit = np.arange(784).astype(np.uint8).tobytes()
    Path("data/mnist/train-images-idx3-ubyte").write_bytes(bytes(16) + digit * 60000)
    Path("data/mnist/train-labels-idx1-ubyte").write_bytes(bytes(8) + bytes([3]) * 60000)


def folders(*paths: str) -> Callable[[], None]:
    return lambda: [Path(path).mkdir(parents=True, exist_ok=True) for path in paths] and None
