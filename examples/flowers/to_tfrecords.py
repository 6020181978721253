"""JPEG files to TFRecords, with Apache Beam.

    pip install 'estimator2strategy[beam]'
    python to_tfrecords.py --jpegs=/tmp/flowers/jpegs --out=/tmp/flowers/records

Runs in this process (the DirectRunner). Flags that are not its own are Beam's: `--runner=...`,
`--project=...` and so on run it elsewhere.
"""

import argparse
import glob
import os

import tensorflow as tf

CLASSES = ("china", "flower")


def make_example(path, image):
    """The serialized tf.train.Example of one file: `image/encoded`, `image/class/label`, ..."""
    label = CLASSES.index(os.path.basename(os.path.dirname(path)))
    example = tf.train.Example()
    feature = example.features.feature
    feature["image/encoded"].bytes_list.value.append(image)
    feature["image/format"].bytes_list.value.append(b"jpeg")
    feature["image/class/label"].int64_list.value.append(label)
    feature["image/class/text"].bytes_list.value.append(CLASSES[label].encode())
    return example.SerializeToString(deterministic=True)


def is_jpeg(path, image):
    """True if the file can be decoded: one that cannot would end a training hours later."""
    if not image.startswith(b"\xff\xd8"):
        return False
    try:
        return tf.io.decode_jpeg(image, channels=3).shape.rank == 3
    except tf.errors.InvalidArgumentError:
        return False


def pipeline(root, folder, out, shards):
    """Adds the pipeline for the files of one split."""
    import apache_beam as beam
    from apache_beam.io import fileio

    split = os.path.basename(folder)
    read = (
        root
        | f"{split}: match" >> fileio.MatchFiles(os.path.join(folder, "*", "*.jpg"))
        | f"{split}: open" >> fileio.ReadMatches()
        | f"{split}: read" >> beam.Map(lambda file: (file.metadata.path, file.read()))
        | f"{split}: keep" >> beam.Filter(lambda pair: is_jpeg(*pair))
    )
    return (
        read
        | f"{split}: shuffle" >> beam.Reshuffle()
        | f"{split}: example" >> beam.Map(lambda pair: make_example(*pair))
        | f"{split}: write"
        >> beam.io.WriteToTFRecord(
            os.path.join(out, split), file_name_suffix=".tfrecord", num_shards=shards
        )
    )


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jpegs", required=True, help="folder of make_jpegs.py")
    parser.add_argument("--out", required=True, help="folder to write to")
    parser.add_argument("--shards", type=int, default=4, help="files for each split")
    args, of_beam = parser.parse_known_args(argv)

    import apache_beam as beam

    os.makedirs(args.out, exist_ok=True)
    options = beam.options.pipeline_options.PipelineOptions(of_beam, save_main_session=False)
    with beam.Pipeline(options=options) as root:
        for folder in sorted(glob.glob(os.path.join(args.jpegs, "*"))):
            pipeline(root, folder, args.out, args.shards)


if __name__ == "__main__":
    main()
