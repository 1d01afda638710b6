"""Writes a small SentencePiece BPE model as Gemma's are made (byte fallback, pieces of its own, white space as it is), and
what the package makes of some texts: data/bpe.model, data/bpe.json {text: ids}; and what transformers makes of ids, without
special tokens: data/bpe_texts.json {text: ids}. Needs sentencepiece, transformers and protobuf.

  make_bpe_goldens.py
"""

import json
import os
import random
import shutil
import tempfile

import sentencepiece
from transformers import GemmaTokenizer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
WORDS = "the a of fox red snow light photo photograph soft in on and house houses horse shore store stored foxes".split()


def texts(count, seed):
    draw = random.Random(seed)
    glue = [" ", " ", " ", "  ", "\n", "\n\n", ", ", ".", "-", "\t", " <mask> ", "é", "日本", "🦊", "'s "]
    return ["".join(draw.choice(WORDS + [w.upper() for w in WORDS[:4]]) + draw.choice(glue) for _ in range(draw.randint(1, 9))) for _ in range(count)]


def main():
    corpus = os.path.join(HERE, "bpe.txt")
    with open(corpus, "w", encoding="utf-8") as file:
        file.write("\n".join(line.replace("\n", " ") for line in texts(400, 1)))
    sentencepiece.SentencePieceTrainer.train(
        input=corpus,
        model_prefix=os.path.join(HERE, "bpe"),
        model_type="bpe",
        vocab_size=400,
        byte_fallback=True,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        character_coverage=0.98,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        pad_piece="<pad>",
        eos_piece="<eos>",
        bos_piece="<bos>",
        user_defined_symbols=["<mask>", "\n\n", "\u2581\u2581"],
        minloglevel=2,
    )
    os.remove(corpus)
    os.remove(os.path.join(HERE, "bpe.vocab"))
    model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(HERE, "bpe.model"))
    some = ["", " ", "x", "aaaa", "foxfoxes", "the  end", " a", "ẞß"] + texts(60, 2)
    with open(os.path.join(HERE, "bpe.json"), "w", encoding="ascii") as file:
        rows = (f" {json.dumps(text)}: {json.dumps(model.encode(text))}" for text in dict.fromkeys(some))
        file.write("{\n" + ",\n".join(rows) + "\n}\n")
    write_texts([model.encode(text) for text in some])


def write_texts(encoded):
    """Of these ids, and of them among special tokens and runs of spaces."""
    pad, eos, bos, unk, mask, lines, spaces = range(7)
    draw = random.Random(3)
    written = [ids[:] for ids in encoded]
    for ids in encoded:
        for token in draw.sample([pad, eos, bos, unk, mask, lines, spaces, spaces], 4):
            ids.insert(draw.randint(0, len(ids)), token)
    # Bytes of one character have to stay together.
    written += [ids for ids in encoded if all(token > 6 + 256 or token < 7 for token in ids)]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(HERE, "bpe.model"), os.path.join(folder, "tokenizer.model"))
        tokenizer = GemmaTokenizer.from_pretrained(folder)
    texts = {tokenizer.decode(ids, skip_special_tokens=True): ids for ids in written}
    with open(os.path.join(HERE, "bpe_texts.json"), "w", encoding="ascii") as file:
        rows = (f" {json.dumps(text)}: {json.dumps(ids)}" for text, ids in texts.items())
        file.write("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
