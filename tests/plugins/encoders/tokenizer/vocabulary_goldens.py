"""Writes what the `tokenizers` package makes of 10,000 strings with the published vocabularies.

  vocabulary_goldens.py FOLDER    writes data/goldens/shipped_NAME.json.txt for clip, t5xxl, qwen2.5 and qwen3
  vocabulary_goldens.py           writes that for byt5, which needs no files, by the `transformers` package

FOLDER holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them. Where there is no
tokenizer.json, the parts are chosen as the converters of the `transformers` package choose them; this shares no code
with that script."""

import json
import os
import shutil
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

import make_goldens


def bpe(folder, **options):
    return Tokenizer(models.BPE.from_file(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"), **options))


def clip(folder):
    tokenizer = bpe(folder, end_of_word_suffix="</w>", unk_token="<|endoftext|>")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    words = r"""'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(words), behavior="removed", invert=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<|startoftext|>", "<|endoftext|>")])
    return tokenizer


QWEN3_TOKENS = ["<tool_response>", "</tool_response>", "<think>", "</think>"]


def qwen(folder, last=()):
    """Of Qwen2.5; Qwen3 has other added tokens in the places of its last ones."""
    tokenizer = bpe(folder, unk_token=None, fuse_unk=False, byte_fallback=False)
    tokenizer.normalizer = normalizers.NFC()
    words = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
             r"""\s*[\r\n]+|\s+(?!\S)|\s+""")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(words), behavior="isolated", invert=False),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
        added = json.load(file)["added_tokens_decoder"]
    for number in sorted(added, key=int):
        token = dict(added[number])
        if int(number) >= 151669 - len(last):
            token |= {"content": last[int(number) - 151669], "special": False}
        tokenizer.add_tokens([AddedToken(token.pop("content"), **token)])
        assert tokenizer.get_vocab_size() == int(number) + 1
    return tokenizer


def write_byt5():
    """Through a tokenizer.json is no way: transformers has a class of its own."""
    import transformers

    tokenizer = transformers.ByT5Tokenizer()
    name = "transformers " + transformers.__version__
    make_goldens.routes = lambda folder: ["json"]
    make_goldens.encoder = lambda folder, route: (lambda text: tokenizer(text, add_special_tokens=False)["input_ids"], name)
    make_goldens.write("shipped_byt5", "")


def main(folder):
    with tempfile.TemporaryDirectory() as work:
        for name in ("clip", "t5xxl", "qwen2.5", "qwen3"):
            os.mkdir(os.path.join(work, name))
        clip(os.path.join(folder, "clip")).save(os.path.join(work, "clip", "tokenizer.json"))
        qwen(os.path.join(folder, "qwen2.5")).save(os.path.join(work, "qwen2.5", "tokenizer.json"))
        qwen(os.path.join(folder, "qwen2.5"), QWEN3_TOKENS).save(os.path.join(work, "qwen3", "tokenizer.json"))
        shutil.copy(os.path.join(folder, "t5xxl", "tokenizer.json"), os.path.join(work, "t5xxl"))
        for name in ("clip", "t5xxl", "qwen2.5", "qwen3"):
            make_goldens.write("shipped_" + name, os.path.join(work, name))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    main(sys.argv[1]) if len(sys.argv) == 2 else write_byt5()
