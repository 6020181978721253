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
CHIPHUYEN = "chiphuyen/stanford-tensorflow-tutorials", "51e53da"
MORVAN_RL = "MorvanZhou/Reinforcement-learning-with-tensorflow", "93e3334"
BERT = "--bert_config_file=bert_config.json --vocab_file=vocab.txt --output_dir=out"
TFLEARN = "tflearn/tflearn", "db51767"
PRINCEWEN = "princewen/tensorflow_practice", "b3696f7"

ROWS = (
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
        # Its losses are NaN from the third step on. The oneDNN of TensorFlow 2 makes 0 of a NaN
        # in a matmul with a bias and relu, 1.15 keeps it.
        env={"TF_ENABLE_ONEDNN_OPTS": "0"},
        runs=20,
    ),
    Row(
        "mcclure-regression",
        *MCCLURE,
        "03_Linear_Regression/05_Implementing_Deming_Regression/05_deming_regression.py",
    ),
    Row(
        "transformer-experiment",
        "DongjunLee/transformer-tensorflow",
        "b6585fa",
        "main.py --config=check-tiny --mode=train_and_evaluate",
        data.translations,
        beside=("DongjunLee/hb-config@5f31f48",),
        path=("beside",),
    ),
    Row(
        "biobert-relations",
        "dmis-lab/biobert",
        "e283eaa",
        f"run_re.py --task_name=gad --do_train --do_eval --do_predict --data_dir=re {BERT} --max_seq_length=12 --train_batch_size=4 --eval_batch_size=4 --predict_batch_size=4 --num_train_epochs=1e6 --warmup_proportion=0 --save_checkpoints_steps=5",
        data.bert_with_relations,
    ),
    Row(
        "albert-zh-pairs",
        "brightmart/albert_zh",
        "52149e8",
        f"run_classifier.py --task_name=lcqmc --do_train --do_eval --do_predict --data_dir=pairs {BERT} --max_seq_length=12 --train_batch_size=4 --eval_batch_size=4 --predict_batch_size=4 --num_train_epochs=1e6 --warmup_proportion=0 --save_checkpoints_steps=5",
        data.bert_with_pairs,
    ),
    Row(
        "dl4marco-bert",
        "nyu-dl/dl4marco-bert",
        "a75f26a",
        "run_msmarco.py --data_dir=queries --bert_config_file=bert_config.json --output_dir=out --init_checkpoint= --max_seq_length=12 --train_batch_size=4 --eval_batch_size=4 --num_train_steps=10000000 --num_warmup_steps=0 --num_eval_docs=4 --learning_rate=1e-3",
        data.bert_with_queries,
    ),
    Row(
        "bert-language-model",
        "xu-song/bert-as-language-model",
        "fa449de",
        f"run_lm_predict.py --input_file=sentences.txt {BERT} --max_seq_length=12 --max_predictions_per_seq=3",
        data.bert_with_sentences,
    ),
    Row(
        "chiphuyen-convnet",
        *CHIPHUYEN,
        "07_convnet_layers.py",
        data.mnist_in("data/mnist", train=640, test=256, zipped=False),
        folder="examples",
        runs=20,
    ),
    Row(
        "chiphuyen-char-rnn", *CHIPHUYEN, "11_char_rnn.py", data.tweets, folder="examples", runs=30
    ),
    Row(
        "morvan-rl-actor-critic",
        *MORVAN_RL,
        "AC_CartPole.py",
        folder="contents/8_Actor_Critic_Advantage",
        runs=60,
    ),
    Row(
        "morvan-rl-policy-gradient",
        *MORVAN_RL,
        "run_CartPole.py",
        folder="contents/7_Policy_gradient_softmax",
        runs=60,
    ),
    Row("golbin-dqn", *GOLBIN, "agent.py --train", folder="12 - DQN", runs=40),
    Row(
        "youtube-8m",
        "google/youtube-8m",
        "e6f6bf6",
        "train.py --train_data_pattern=video/*.tfrecord --feature_names=mean_rgb --feature_sizes=8 --model=MoeModel --train_dir=out --batch_size=4 --num_readers=1 --max_steps=6 --export_model_steps=3 --num_epochs=100",
        data.videos,
    ),
    Row(
        "pix2pix",
        "affinelayer/pix2pix-tensorflow",
        "0f21744",
        "pix2pix.py --mode=train --input_dir=facades --output_dir=out --max_steps=4 --ngf=2 --ndf=2 --progress_freq=1 --save_freq=4 --summary_freq=2",
        data.facades,
    ),
    Row(
        "dmn-experiment",
        "DongjunLee/dmn-tensorflow",
        "09796bd",
        "main.py --config=bAbi_task1 --mode=train_and_evaluate",
        data.one_word_vector,
        beside=("DongjunLee/hb-config@5f31f48",),
        path=("beside",),
    ),
    Row(
        "conversation-experiment",
        "DongjunLee/conversation-tensorflow",
        "4cca9cf",
        "main.py --config=check_tiny --mode=train_and_evaluate",
        files=tuple(
            f"data/tiny_processed_data/{part}"
            for part in ("vocab", "train_ids.enc", "train_ids.dec", "test_ids.enc", "test_ids.dec")
        ),
        beside=("DongjunLee/hb-config@5f31f48",),
        path=("beside",),
    ),
    Row(
        "tkipf-gae",
        "tkipf/gae",
        "0ebbe9b",
        "train.py --model=gcn_vae",
        files=tuple(
            f"gae/data/ind.cora.{part}" for part in ("allx", "graph", "tx", "x", "test.index")
        ),
        folder="gae",
        path=("",),
        runs=12,
    ),
    Row(
        "kyubyong-transformer",
        "Kyubyong/transformer",
        "fb023bb",
        "train.py --vocab_size=24 --batch_size=4 --d_model=16 --d_ff=32 --num_blocks=2 --num_heads=2 --maxlen1=8 --maxlen2=8 --warmup_steps=4",
        data.sentence_pieces,
        runs=20,
    ),
    Row(
        "sr-gnn",
        "CRIPAC-DIG/SR-GNN",
        "e21cfa4",
        "main.py --batchSize=8 --hiddenSize=16",
        data.sessions,
        folder="tensorflow_code",
        runs=30,
    ),
    Row(
        "adapter-bert",
        "google-research/adapter-bert",
        "1a31fc6",
        f"run_classifier.py --task_name=cola --do_train --do_eval --do_predict --data_dir=cola {BERT} --max_seq_length=12 --train_batch_size=4 --eval_batch_size=4 --predict_batch_size=4 --num_train_epochs=1e6 --warmup_proportion=0 --save_checkpoints_steps=5 --learning_rate=1e-3",
        data.bert_with_acceptability,
    ),
    Row("tflearn-logical", *TFLEARN, "examples/basics/logical.py", path=("",), runs=60),
    Row(
        "brightmart-text-rnn",
        "brightmart/text_classification",
        "091ff99",
        "a03_TextRNN/p8_TextRNN_model.py",
        runs=20,
    ),
    Row(
        "capsnet",
        "naturomics/CapsNet-Tensorflow",
        "5b464ca",
        "main.py --batch_size=2 --train_sum_freq=1 --val_sum_freq=0",
        data.equal_digits,
        runs=6,
    ),
    Row(
        "census-custom-experiment",
        "GoogleCloudPlatform/cloudml-samples",
        "8483241",
        "trainer/task.py --train-files=train.csv --eval-files=eval.csv --job-dir=out --train-steps=10 --eval-steps=2 --train-batch-size=8 --eval-batch-size=8 --eval-delay-secs=0",
        data.census("train.csv", "eval.csv"),
        folder="census/customestimator",
    ),
    Row("ctr-xdeepfm", *CTR, "main.py --model=xDeepFM --dataset=census", data.amazon),
    Row("ctr-pnn", *CTR, "main.py --model=PNN --dataset=census", data.amazon),
    Row(
        "hunkim-stock-prediction",
        *HUNKIM,
        "lab-12-5-rnn_stock_prediction.py",
        files=("data-02-stock_daily.csv",),
        runs=40,
    ),
)
