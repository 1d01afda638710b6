"""Trains the test tokenizers, writes goldens from the `tokenizers` and `sentencepiece` packages, and compares a build
with the packages.

  make_goldens.py train OUT [RULES]        trains OUT/bpe_8000 and OUT/unigram_8000; RULES is "small" (a map of a few
                                           hundred rules, the default) or the name of one of SentencePiece's own
  make_goldens.py write NAME=FOLDER...     writes data/goldens/NAME.ROUTE.txt for every route that FOLDER has
  make_goldens.py compare HARNESS FOLDER...   counts the strings whose ids differ from the packages'

Routes: json (tokenizer.json), spiece (spiece.model), vocab (vocab.json and merges.txt; needs `transformers`).
"""

import json
import os
import subprocess
import sys
import tempfile
import unicodedata

import test_strings

COUNT = 10000
SEED = 1
BATCH = 100  # strings in one hash
HERE = os.path.dirname(os.path.abspath(__file__))

# Onsets, vowels and endings of made-up words; scripts without syllables of that shape have ranges instead.
SYLLABLES = [
    ("b c d f g h k l m n p r s t v w st tr pl gr sh ch".split(), "a e i o u ai ou ea y".split(), ["", "", "n", "r", "s", "t", "ll", "ng"]),
    ("b d f g k l m n p r s t ß ç ñ ł".split(), "ä ö ü é è ê å ø œ í ó".split(), ["", "n", "r", "ş", "ť"]),
    ("б в г д ж з к л м н п р с т ч ш".split(), "а е и о у ы э я ю".split(), ["", "й", "м", "ть", "н"]),
    ("β γ δ θ κ λ μ ν π ρ σ τ φ χ".split(), "α ε η ι ο υ ω ά έ ή".split(), ["", "ς", "ν"]),
    ("क ख ग च ज ट ड त द न प ब म य र ल व स ह".split(), ["", "ा", "ि", "ी", "ु", "े", "ो"], ["", "ं", "्"]),
    ("ก ข ค ง จ ช ด ต ท น บ ป พ ม ย ร ล ว ส ห".split(), ["า", "ี", "ู", "ะ", "ิ", "ั"], ["", "น", "ง", "่"]),
    ("ب ت ج ح د ر س ش ع ف ق ك ل م ن ه و ي".split(), ["", "ا", "ي", "و", "َ"], ["", "ة", "ن"]),
]
RANGES = [(0x4E00, 0x5200, 2), (0x3042, 0x3093, 3), (0x30A2, 0x30F3, 3), (0xAC00, 0xB000, 2), (0x1F600, 0x1F640, 1)]


def made_up_words(random, count):
    words = []
    for _ in range(count):
        kind = random.below(len(SYLLABLES) + len(RANGES))
        if kind < len(SYLLABLES):
            onsets, vowels, ends = SYLLABLES[kind]
            words.append("".join(random.pick(onsets) + random.pick(vowels) + random.pick(ends)
                                 for _ in range(1 + random.below(3))))
        else:
            first, last, size = RANGES[kind - len(SYLLABLES)]
            words.append("".join(chr(first + random.below(last - first)) for _ in range(1 + random.below(size))))
    return words


def training_lines(count=30000):
    random = test_strings.Random(2024)
    words = test_strings.Source().words * 2 + made_up_words(random, 9000)
    lines = []
    for _ in range(count):
        line = ""
        for _ in range(4 + random.below(14)):
            rank = (random.below(1 << 20) * random.below(1 << 20)) >> 20  # small ranks are frequent
            line += (" " if line else "") + words[rank * len(words) >> 20]
            if random.below(9) == 0:
                line += random.pick([",", ".", "!", "?", ":", ";", " —", "。", "、"])
            if random.below(15) == 0:
                line += " " + str(random.below(3000))
        lines.append(line)
    return lines


def train_bpe(folder, lines):
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=8000, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=["<s>", "</s>", "<pad>"])
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False, special=True),
                          AddedToken("heddle", single_word=True, normalized=True),
                          AddedToken("A\u030a", normalized=True)])
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", tokenizer.token_to_id("<s>")), ("</s>", end)])
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)


def small_rules():
    """A few hundred rules of the kinds that SentencePiece's maps have."""
    rules = {}
    for first, last in [(0x2000, 0x200B), (0xA0, 0xA0), (0x3000, 0x3000), (9, 13)]:
        rules.update({chr(c): " " for c in range(first, last)} if first != last else {chr(first): " "})
    rules.update({chr(c): "" for c in list(range(1, 9)) + list(range(14, 32)) + [0x7F, 0x200E, 0xFEFF]})
    for first, last in [(0xA8, 0x180), (0x1E00, 0x1E9B), (0x2070, 0x20A0), (0x2460, 0x2480), (0xFB00, 0xFB07),
                        (0xFF01, 0xFF9F)]:
        for c in range(first, last):
            plain = unicodedata.normalize("NFKC", chr(c))
            if plain != chr(c):
                rules[chr(c)] = plain
            parts = unicodedata.normalize("NFD", chr(c))
            if len(parts) > 1 and c < 0x1EA0:
                rules[parts] = plain
    return "".join("%s\t%s\n" % (" ".join("%X" % ord(c) for c in source), " ".join("%X" % ord(c) for c in target))
                   for source, target in sorted(rules.items()))


def train_unigram(folder, lines, rules):
    import sentencepiece

    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        text = os.path.join(work, "lines.txt")
        with open(text, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        options = {"normalization_rule_name": rules}
        if rules == "small":
            table = os.path.join(work, "rules.tsv")
            with open(table, "w", encoding="utf-8") as file:
                file.write(small_rules())
            options = {"normalization_rule_tsv": table}
        sentencepiece.SentencePieceTrainer.train(
            input=text, model_prefix=os.path.join(work, "m"), vocab_size=8000, model_type="unigram",
            character_coverage=0.9995, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, num_threads=1, minloglevel=2,
            self_test_sample_size=0, **options)
        save_without_paths(os.path.join(work, "m.model"), os.path.join(folder, "spiece.model"))
    write_unigram_json(folder)


def save_without_paths(source, target):
    """The model remembers the files it was trained from; nobody else has them."""
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    with open(source, "rb") as file:
        proto.ParseFromString(file.read())
    for field in ("input", "model_prefix"):
        proto.trainer_spec.ClearField(field)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    with open(target, "wb") as file:
        file.write(proto.SerializeToString())


def write_unigram_json(folder):
    """The same model as a tokenizer.json, its parts chosen as the converters for T5 choose them."""
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    proto = sentencepiece_model_pb2.ModelProto()
    with open(os.path.join(folder, "spiece.model"), "rb") as file:
        proto.ParseFromString(file.read())
    tokenizer = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], unk_id=2, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<pad>", "</s>", "<unk>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)


def routes(folder):
    files = {"json": ["tokenizer.json"], "spiece": ["spiece.model"], "vocab": ["vocab.json", "merges.txt"]}
    return [r for r, names in files.items() if all(os.path.exists(os.path.join(folder, n)) for n in names)]


def encoder(folder, route):
    """The package's function from text to ids, and a line that says which package it is."""
    if route == "json":
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return lambda text: tokenizer.encode(text, add_special_tokens=False).ids, "tokenizers " + tokenizers.__version__
    if route == "spiece":
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "spiece.model"))
        return lambda text: processor.encode(text, out_type=int), "sentencepiece " + sentencepiece.__version__
    import shutil
    import transformers

    with tempfile.TemporaryDirectory() as work:  # without tokenizer.json, which would win
        for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
            if os.path.exists(os.path.join(folder, name)):
                shutil.copy(os.path.join(folder, name), work)
        tokenizer = transformers.CLIPTokenizer.from_pretrained(work)
    return (lambda text: tokenizer(text, add_special_tokens=False)["input_ids"],
            "transformers " + transformers.__version__)


def fnv(value, ids):
    """FNV-1a, 64 bits, over the number of ids and the ids, each as four bytes from the lowest."""
    for number in [len(ids)] + ids:
        for byte in number.to_bytes(4, "little"):
            value = ((value ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return value


def write(name, folder):
    texts = test_strings.strings(COUNT, SEED)
    os.makedirs(os.path.join(HERE, "data", "goldens"), exist_ok=True)
    for route in routes(folder):
        encode, package = encoder(folder, route)
        ids = [encode(text) for text in texts]
        lines = ["# %s, route %s, by %s: hashes of %d strings each, then the ids of some" % (name, route, package, BATCH)]
        for first in range(0, COUNT, BATCH):
            value = 0xCBF29CE484222325
            for one in ids[first:first + BATCH]:
                value = fnv(value, one)
            lines.append("hash %d %016x" % (first, value))
        for index in range(5, COUNT, 97):
            if len(ids[index]) <= 120:
                lines.append("ids %d %s" % (index, " ".join(map(str, ids[index]))))
        path = os.path.join(HERE, "data", "goldens", "%s.%s.txt" % (name, route))
        with open(path, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        print(path)


def compare(harness, folder):
    texts = test_strings.strings(COUNT, SEED)
    total = 0
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "strings.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(texts, file)
        for route in routes(folder):
            encode, package = encoder(folder, route)
            output = subprocess.run([harness, folder, route, path], check=True, capture_output=True, text=True).stdout
            ours = [[int(i) for i in line.split()] for line in output.split("\n")[:-1]]
            wrong = [i for i, text in enumerate(texts) if i >= len(ours) or ours[i] != encode(text)]
            for i in wrong[:3]:
                print(ascii(texts[i][:200]), "\n  package", encode(texts[i])[:40], "\n  ours   ", ours[i][:40])
            print("%s %s: %d strings, %d differ from %s" % (folder, route, len(texts), len(wrong), package))
            total += len(wrong)
    return total


def main(args):
    if len(args) >= 2 and args[0] == "train":
        lines = training_lines()
        train_bpe(os.path.join(args[1], "bpe_8000"), lines)
        train_unigram(os.path.join(args[1], "unigram_8000"), lines, args[2] if len(args) > 2 else "small")
    elif len(args) >= 2 and args[0] == "write":
        for item in args[1:]:
            write(*item.split("=", 1))
    elif len(args) >= 3 and args[0] == "compare":
        sys.exit(1 if sum(compare(args[1], folder) for folder in args[2:]) else 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
