"""The two tokenizers, trained on captions: a byte-level BPE in CLIP's manner and a sentencepiece
unigram in T5's.

    python3 vocabulary.py --out DIR        writes DIR/tokenizer and DIR/tokenizer_2
"""

import argparse
import json
import os
import random
import tempfile

import numpy as np

from captions import describe
from scenes import random_scene

CLIP_LENGTH, T5_LENGTH = 77, 64
BOS, EOS = "<|startoftext|>", "<|endoftext|>"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:!?'\"()-"


def _write_json(path, content, **kwargs):
    with open(path, "w") as file:
        json.dump(content, file, **kwargs)


def _clip_shell(model):
    """CLIP's normalisation and splitting around a BPE model."""
    from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
    t = Tokenizer(model)
    t.normalizer = normalizers.Sequence([normalizers.NFC(),
                                         normalizers.Replace(Regex(r"\s+"), " "),
                                         normalizers.Lowercase()])
    words = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(words, "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    return t


def _bpe(**kwargs):
    from tokenizers import models
    return models.BPE(continuing_subword_prefix="", end_of_word_suffix="</w>", unk_token=EOS,
                      fuse_unk=False, **kwargs)


def train_clip(captions, folder):
    from tokenizers import pre_tokenizers, processors, trainers
    os.makedirs(folder, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = _clip_shell(_bpe())
    raw.train_from_iterator(captions, trainers.BpeTrainer(
        vocab_size=2048, min_frequency=20, show_progress=False, end_of_word_suffix="</w>",
        initial_alphabet=alphabet))
    learned = json.loads(raw.to_str())["model"]["merges"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in learned]
    tokens = alphabet + [c + "</w>" for c in alphabet] + [a + b for a, b in merges]
    vocab = {t: i for i, t in enumerate(list(dict.fromkeys(tokens)) + [BOS, EOS])}
    clip = _clip_shell(_bpe(vocab=vocab, merges=merges))
    clip.add_special_tokens([BOS, EOS])
    clip.post_processor = processors.RobertaProcessing(
        (EOS, vocab[EOS]), (BOS, vocab[BOS]), trim_offsets=False, add_prefix_space=False)
    clip.save(os.path.join(folder, "tokenizer.json"))
    _write_json(os.path.join(folder, "vocab.json"), vocab, ensure_ascii=False)
    with open(os.path.join(folder, "merges.txt"), "w") as file:
        file.write("#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in merges))
    _write_json(os.path.join(folder, "tokenizer_config.json"), {
        "tokenizer_class": "CLIPTokenizer", "bos_token": BOS, "eos_token": EOS, "pad_token": EOS,
        "unk_token": EOS, "model_max_length": CLIP_LENGTH, "do_lower_case": True,
        "add_prefix_space": False}, indent=2)
    return clip


def _train_sentencepiece(captions, folder):
    """Writes folder/spiece.model and returns its processor."""
    import sentencepiece
    with tempfile.TemporaryDirectory() as scratch:
        text = os.path.join(scratch, "captions.txt")
        # The trainer considers a piece only if it occurs in two different words, so each word is
        # shown with a comma, too; otherwise "the" and "red" fall apart into letters.
        with open(text, "w") as file:
            file.write("\n".join(captions + [c.replace(" ", ", ") for c in captions[:5000]]))
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=os.path.join(scratch, "spiece"), vocab_size=320,
            model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False,
            character_coverage=1.0, num_threads=1, minloglevel=2, required_chars=LETTERS)
        path = os.path.join(folder, "spiece.model")
        with open(os.path.join(scratch, "spiece.model"), "rb") as source, open(path, "wb") as file:
            file.write(source.read())
    return sentencepiece.SentencePieceProcessor(model_file=path)


def train_t5(captions, folder):
    from tokenizers import (Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                            processors)
    os.makedirs(folder, exist_ok=True)
    sp = _train_sentencepiece(captions, folder)
    pieces = [(sp.id_to_piece(i), sp.get_score(i)) for i in range(sp.get_piece_size())]
    t5 = Tokenizer(models.Unigram(pieces, unk_id=2))
    t5.normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.Replace(Regex(r" {2,}"), " "), normalizers.Strip()])
    space = dict(replacement="\u2581", prepend_scheme="always", split=True)
    t5.pre_tokenizer, t5.decoder = pre_tokenizers.Metaspace(**space), decoders.Metaspace(**space)
    t5.add_special_tokens(["<pad>", "</s>", "<unk>"])
    t5.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    t5.save(os.path.join(folder, "tokenizer.json"))
    _write_json(os.path.join(folder, "tokenizer_config.json"), {
        "tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "pad_token": "<pad>",
        "unk_token": "<unk>", "extra_ids": 0, "additional_special_tokens": [],
        "model_max_length": T5_LENGTH}, indent=2)
    differ = sum(t5.encode(c).ids != sp.encode(c, out_type=int) + [1] for c in captions[:2000])
    if differ:
        raise RuntimeError(f"{folder}: tokenizer.json and spiece.model disagree on {differ} of "
                           "2000 captions; compare their normalisation")
    return t5


class Tokenizers:
    """Both tokenizers of a pipeline folder; one thread at a time."""

    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.clip, self.t5 = (Tokenizer.from_file(os.path.join(folder, name, "tokenizer.json"))
                              for name in ("tokenizer", "tokenizer_2"))
        self.bos, self.eos = (self.clip.token_to_id(t) for t in (BOS, EOS))

    def encode(self, captions):
        """Captions to ids: CLIP's (n, 77) padded with its end token, T5's (n, 64) padded with 0."""
        return (_encode(self.clip, captions, CLIP_LENGTH, self.eos),
                _encode(self.t5, captions, T5_LENGTH, 0))


def _encode(tokenizer, captions, length, pad):
    tokenizer.no_padding()
    tokenizer.enable_truncation(length)
    ids = np.full((len(captions), length), pad, dtype=np.int16)
    for first in range(0, len(captions), 50000):
        for i, e in enumerate(tokenizer.encode_batch(captions[first:first + 50000]), first):
            ids[i, :len(e.ids)] = e.ids
    return ids


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--captions", type=int, default=60000)
    args = parser.parse_args()
    rng = random.Random(0)
    captions = [describe(random_scene(rng), rng)[0] for _ in range(args.captions)]
    clip = train_clip(captions, os.path.join(args.out, "tokenizer"))
    t5 = train_t5(captions, os.path.join(args.out, "tokenizer_2"))
    for name, t in (("clip", clip), ("t5", t5)):
        longest = max(len(e.ids) for e in t.encode_batch(captions))
        print(f"{name}: {t.get_vocab_size()} tokens, longest caption {longest}")


if __name__ == "__main__":
    main()
