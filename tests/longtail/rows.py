"""The programs of `migration_guide/programs.md` that `replay.py` runs and compares."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from tests.longtail import data

SUFFIXES = frozenset({".py", ".json", ".yml", ".yaml", ".cfg", ".gin", ".txt", ".sh"})


@dataclasses.dataclass(frozen=True)
class Row:
    """One program.

    `program` is its file and flags, run in `folder` of the repository. `data` makes its data there.
    `path` are folders for PYTHONPATH, `options` go to `e2s run`, and `files` are wanted beside those
    with one of SUFFIXES; `beside` are repositories, as OWNER/NAME@COMMIT, that go into the folder
    `beside`. A training ends after `steps`, the program after `calls` of an Estimator or
    `runs` of a Session. `close` is the largest relative difference that counts as equal.
    """

    name: str
    repo: str
    commit: str
    program: str
    data: Callable[[], None] | None = None
    folder: str = ""
    path: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    steps: int = 10
    calls: int = 6
    runs: int = 40
    seconds: int = 240
    close: float = 1e-4


MORVAN = "MorvanZhou/Tensorflow-Tutorial", "42dc32d"
HUNKIM = "hunkim/DeepLearningZeroToAll", "60c707e"
NLINTZ = "nlintz/TensorFlow-Tutorials", "d6bdab7"
GOLBIN = "golbin/TensorFlow-Tutorials", "c8ac1e4"
WISEODD = "wiseodd/generative-models", "b930d5f"
MCCLURE = "nfmcclure/tensorflow_cookbook", "d998edf"
CTR = "DSXiangLi/CTR", "674ca8d"
PRINCEWEN = "princewen/tensorflow_practice", "b3696f7"

ROWS = (
    Row("morvan-batch-norm", *MORVAN, "tutorial-contents/502_batch_normalization.py", runs=20),
    Row("morvan-gan", *MORVAN, "tutorial-contents/406_GAN.py", runs=10),
    Row("morvan-rnn", *MORVAN, "tutorial-contents/403_RNN_regression.py"),
    Row(
        "hunkim-higher-level",
        *HUNKIM,
        "lab-10-7-mnist_nn_higher_level_API.py",
        data.mnist_in("MNIST_data"),
        runs=20,
    ),
    Row(
        "hunkim-save-restore",
        *HUNKIM,
        "lab-13-3-mnist_save_restore.py",
        data.mnist_in("MNIST_data"),
        runs=20,
    ),
    Row("nlintz-lstm", *NLINTZ, "07_lstm.py", data.mnist_in("MNIST_data"), runs=20),
    Row("golbin-seq2seq", *GOLBIN, "'10 - RNN/03 - Seq2Seq.py'"),
    Row(
        "golbin-gan",
        *GOLBIN,
        "'09 - GAN/02 - GAN2.py'",
        data.mnist_in("mnist/data", "samples2"),
        runs=6,
    ),
    Row(
        "wiseodd-wgan",
        *WISEODD,
        "wgan_tensorflow.py",
        data.mnist_in("../../MNIST_data"),
        folder="GAN/wasserstein_gan",
        runs=20,
    ),
    Row(
        "wiseodd-infogan",
        *WISEODD,
        "infogan_tensorflow.py",
        data.mnist_in("../../MNIST_data"),
        folder="GAN/infogan",
        runs=6,
    ),
    Row(
        "mcclure-svm",
        *MCCLURE,
        "04_Support_Vector_Machines/04_Working_with_Kernels/04_svm_kernels.py",
    ),
    Row("snowkylin-ntm", "snowkylin/ntm", "7db4068", "copy_task.py", runs=8),
    Row(
        "sherjilozair-char-rnn",
        "sherjilozair/char-rnn-tensorflow",
        "4bff62d",
        "train.py --rnn_size=16 --batch_size=8 --seq_length=10",
        runs=30,
    ),
    Row(
        "madry-mnist",
        "MadryLab/mnist_challenge",
        "3ee3643",
        "train.py",
        data.mnist_in("MNIST_data"),
        runs=12,
    ),
    Row(
        "tkipf-gcn",
        "tkipf/gcn",
        "39a4089",
        "train.py",
        folder="gcn",
        files=tuple(
            f"gcn/data/ind.cora.{part}"
            for part in ("allx", "ally", "graph", "tx", "ty", "x", "y", "test.index")
        ),
        path=("",),
        runs=20,
    ),
    Row(
        "gat-cora",
        "PetarV-/GAT",
        "5af87e7",
        "execute_cora.py",
        data.folders("pre_trained/cora"),
        files=tuple(
            f"data/ind.cora.{part}"
            for part in ("allx", "ally", "graph", "tx", "ty", "x", "y", "test.index")
        ),
        runs=6,
    ),
    Row(
        "omoindrot-triplet",
        "omoindrot/tensorflow-triplet-loss",
        "fc69836",
        "train.py --model_dir=experiments/batch_all",
        data.mnist_in("data/mnist", zipped=False, test=128),
    ),
    Row(
        "cloudml-dist-mnist",
        "GoogleCloudPlatform/cloudml-dist-mnist-example",
        "bbc47d3",
        "-m trainer.task_p3 --data_dir=data --output_dir=out --train_steps=10 --eval_steps=2 --train_batch_size=8 --eval_batch_size=8",
        data.mnist_records,
    ),
    Row("ctr-deepfm", *CTR, "main.py --model=DeepFM --dataset=census", data.amazon),
    Row("ctr-dcn", *CTR, "main.py --model=DCN --dataset=census", data.amazon),
    Row("ctr-fibinet", *CTR, "main.py --model=FiBiNET --dataset=census", data.amazon),
    Row("ctr-din", *CTR, "main.py --model=DIN --dataset=amazon", data.amazon),
    Row("ctr-afm", *CTR, "main.py --model=AFM --dataset=frappe", data.frappe),
    Row(
        "listen-attend-spell",
        "WindQAQ/listen-attend-and-spell",
        "7f7cb9a",
        "train.py --train=train.tfrecord --valid=valid.tfrecord --vocab=vocab.txt --model_dir=model --encoder_units=8 --decoder_units=8 --encoder_layers=2 --use_pyramidal --batch_size=4 --sampling_probability=0",
        data.spoken,
    ),
    Row(
        "connor-gpt2",
        "ConnorJL/GPT2",
        "936fe2a",
        "main.py --model=tiny.json",
        data.openwebtext,
        calls=2,
    ),
    Row(
        "workshop-census",
        "amygdala/tensorflow-workshop",
        "8f4cd5f",
        "-m trainer.task --train-files=train.csv --eval-files=eval.csv --job-dir=out --train-steps=10 --eval-steps=2 --train-batch-size=8 --eval-batch-size=8",
        data.census("train.csv", "eval.csv"),
        folder="workshop_sections/wide_n_deep/tf_train_and_evaluate",
    ),
    Row(
        "igormq-ctc",
        "igormq/ctc_tensorflow_example",
        "d71130f",
        "ctc_tensorflow_example.py",
        data.timit,
        runs=20,
    ),
    Row(
        "sequence-tagging",
        "guillaumegenthial/sequence_tagging",
        "5cb9890",
        "train.py",
        data.named_entities,
        runs=10,
    ),
    Row(
        "princewen-dcn",
        *PRINCEWEN,
        "main.py",
        data.porto,
        folder="recommendation/Basic-DCN-Demo",
        runs=20,
    ),
    Row(
        "bert-bilstm-crf",
        "macanv/BERT-BiLSTM-CRF-NER",
        "ccf3f09",
        "run.py -data_dir=ner -output_dir=out -bert_config_file=bert_config.json -init_checkpoint= -vocab_file=vocab.txt -max_seq_length=12 -batch_size=4 -lstm_size=8 -num_train_epochs=2 -save_checkpoints_steps=5",
        data.bert_with_entities,
        calls=4,
    ),
    Row(
        "princewen-resnet",
        *PRINCEWEN,
        "resnet_mnist.py",
        data.mnist_in("MNIST_data"),
        folder="CV/ResNet",
        runs=6,
    ),
    Row(
        "hunkim-cnn-layers",
        *HUNKIM,
        "lab-11-4-mnist_cnn_layers.py",
        data.mnist_in("MNIST_data"),
        runs=6,
    ),
    Row(
        "hunkim-diabetes",
        *HUNKIM,
        "lab-05-2-logistic_regression_diabetes.py",
        files=("data-03-diabetes.csv",),
    ),
    Row(
        "morvan-autoencoder",
        *MORVAN,
        "tutorial-contents/404_AutoEncoder.py",
        data.mnist_in("mnist"),
        runs=10,
    ),
    Row(
        "wiseodd-aae",
        *WISEODD,
        "aae_tensorflow.py",
        data.mnist_in("../../MNIST_data"),
        folder="VAE/adversarial_autoencoder",
        runs=5,
    ),
    Row(
        "mcclure-regression",
        *MCCLURE,
        "03_Linear_Regression/05_Implementing_Deming_Regression/05_deming_regression.py",
    ),
    Row(
        "text-cnn-experiment",
        "DongjunLee/text-cnn-tensorflow",
        "1e9ebb0",
        "main.py --config=check_tiny --mode=train_and_evaluate",
        data.reviews,
        beside=("DongjunLee/hb-config@5f31f48",),
        path=("beside",),
    ),
    Row(
        "transformer-experiment",
        "DongjunLee/transformer-tensorflow",
        "b6585fa",
        "main.py --config=check-tiny --mode=train",
        data.translations,
        beside=("DongjunLee/hb-config@5f31f48",),
        path=("beside",),
    ),
)
