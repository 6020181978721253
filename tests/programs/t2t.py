"""tensor2tensor's own programs train a transformer that spells words backwards, evaluate it, and
decode what it has learned.

    python tests/programs/t2t.py FOLDER     # TensorFlow 1.15.5, Python 3.7
    e2s run tests/programs/t2t.py FOLDER    # here

FOLDER/found.json says: the loss of each step, what was evaluated, and what three words become,
greedily, by a search of two beams, and by the exported model. tests/goldens/t2t.json is what it was
there, with tensor2tensor 1.15.7.
"""

import glob
import json
import os
import sys

import tensorflow.compat.v1 as tf
from tensor2tensor.bin import t2t_decoder, t2t_trainer
from tensor2tensor.utils import decoding, trainer_lib

FLAGS = tf.flags.FLAGS
WORDS = ["abcdefg", "hag", "bad"]
HERE = os.path.dirname(os.path.abspath(__file__))


def set_flags(folder):
    FLAGS.t2t_usr_dir = os.path.join(HERE, "t2t_usr")
    FLAGS.problem = "backwards"
    FLAGS.model = "spelling_transformer"
    FLAGS.hparams_set = "spelling_tiny"
    FLAGS.data_dir = os.path.join(folder, "data")
    FLAGS.tmp_dir = os.path.join(folder, "tmp")
    FLAGS.output_dir = os.path.join(folder, "model")
    FLAGS.random_seed = 1


def trained():
    """The losses of all steps, and what the last evaluation wrote for TensorBoard."""
    FLAGS.generate_data = True
    FLAGS.train_steps = FLAGS.local_eval_frequency = FLAGS.iterations_per_loop = 20
    FLAGS.eval_steps = 2
    t2t_trainer.main([])
    with open(os.path.join(FLAGS.output_dir, "losses.json")) as file:
        losses = json.load(file)
    (events,) = glob.glob(os.path.join(FLAGS.output_dir, "eval", "events*"))
    values = [v for event in tf.train.summary_iterator(events) for v in event.summary.value]
    return losses, {v.tag: v.simple_value for v in values if v.HasField("simple_value")}


def decoded(folder, beams):
    """What `t2t_decoder --decode_from_file` makes of the words."""
    FLAGS.decode_from_file = os.path.join(folder, "words.txt")
    FLAGS.decode_to_file = os.path.join(folder, f"decoded_{beams}.txt")
    FLAGS.decode_hparams = decode_hparams(beams)
    with open(FLAGS.decode_from_file, "w") as file:
        file.write("\n".join(WORDS) + "\n")
    t2t_decoder.main([])
    with open(FLAGS.decode_to_file) as file:
        return file.read().splitlines()


def decode_hparams(beams):
    return f"beam_size={beams},alpha=0.6,extra_length=4,return_beams=true"


def served(folder):
    """What the exported model answers, as `t2t_exporter` makes it."""
    hparams = t2t_decoder.create_hparams()
    hparams.no_data_parallelism = True
    settings = decoding.decode_hparams(decode_hparams(1))
    estimator = trainer_lib.create_estimator(
        FLAGS.model, hparams, t2t_trainer.create_run_config(hparams), decode_hparams=settings
    )
    receiver = lambda: hparams.problem.serving_input_fn(hparams, settings)  # noqa: E731
    exporter = tf.estimator.FinalExporter("exporter", receiver)
    exported = exporter.export(estimator, os.path.join(folder, "export"), None, None, True)
    encoder = hparams.problem.feature_encoders(FLAGS.data_dir)["inputs"]
    examples = []
    for word in WORDS:
        ids = tf.train.Int64List(value=[*encoder.encode(word), 1])
        feature = {"inputs": tf.train.Feature(int64_list=ids)}
        examples.append(
            tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
        )
    with tf.Session(graph=tf.Graph()) as session:
        signature = tf.saved_model.load(session, ["serve"], exported).signature_def[
            "serving_default"
        ]
        (fed,) = signature.inputs.values()
        return session.run(signature.outputs["outputs"].name, {fed.name: examples}).tolist()


def main(argv):
    folder = argv[1]
    set_flags(folder)
    losses, evaluated = trained()
    found = {"losses": losses, "evaluated": evaluated}
    found["greedy"] = decoded(folder, 1)
    found["beams"] = decoded(folder, 2)
    found["served"] = served(folder)
    with open(os.path.join(folder, "found.json"), "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)


if __name__ == "__main__":
    tf.app.run(main, sys.argv)
