"""Writes the vocabularies that ship with heddle, from their publishers' files.

  make_vocabularies.py FOLDER    writes clip, t5xxl and qwen2.5 (.json and .bin each) beside this script, and the rules
                                 of Qwen3 (qwen3.json), whose .bin is Qwen2.5's, and byt5.json
  make_vocabularies.py           writes byt5.json alone, for which nothing is needed: its tokens are bytes

FOLDER holds clip/ (vocab.json, merges.txt), t5xxl/ (tokenizer.json) and qwen2.5/ (vocab.json, merges.txt,
tokenizer_config.json). A .json is a tokenizer.json of the `tokenizers` package without its vocabulary, which is
the .bin:

- of a byte-level BPE: for every merge, by rank, the ids of its two parts, each as LEB128. Ids count the characters of
  the bytes in order of their code points, then the same with the suffix of a word's end where there is one, then what
  the merges make, by rank.
- of a unigram model: for every piece, by id, its score (f32, little-endian), its length in bytes as LEB128, its bytes.

Ids that do not follow from that order, or scores that are no f32, are refused."""

import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
QWEN_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
              r"\s+(?!\S)|\s+")
QWEN3_TOKENS = ["<tool_response>", "</tool_response>", "<think>", "</think>"]  # in the places of Qwen2.5's last
CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def leb128(number):
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


def byte_characters():
    """What byte-level BPE writes for the 256 bytes, in order of code points."""
    plain = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    return [chr(c) for c in sorted(plain)] + [chr(256 + i) for i in range(256 - len(plain))]


def pack_merges(folder, suffix, added):
    ids = json.loads(read(folder, "vocab.json"))
    tokens = byte_characters()
    tokens += [c + suffix for c in tokens] if suffix else []
    out = bytearray()
    for line in read(folder, "merges.txt").split("\n"):
        if line and not line.startswith("#version"):
            left, right = line.split(" ")
            out += leb128(ids[left]) + leb128(ids[right])
            tokens.append(left + right)
    tokens += added
    if any(tokens[i] != token for token, i in ids.items()) or len(tokens) < len(ids):
        sys.exit(folder + ": the ids are not in the order that a .bin can say")
    return bytes(out)


def pack_pieces(vocabulary):
    out = bytearray()
    for piece, score in vocabulary:
        data = piece.encode("utf-8")
        number = struct.pack("<f", score)
        if struct.unpack("<f", number)[0] != score:
            sys.exit("the score of %r is no f32" % piece)
        out += number + leb128(len(data)) + data
    return bytes(out)


def save_rules(name, rules):
    with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as file:
        json.dump(rules, file, ensure_ascii=True, indent=1)
        file.write("\n")


def save(name, rules, data):
    save_rules(name, rules)
    with open(os.path.join(HERE, name + ".bin"), "wb") as file:
        file.write(data)
    print(name, len(data), "bytes")


def byte_level(**more):
    return {"type": "ByteLevel", "add_prefix_space": False, **more}


def make_clip(folder):
    specials = ["<|startoftext|>", "<|endoftext|>"]
    data = pack_merges(folder, "</w>", specials)
    begin = json.loads(read(folder, "vocab.json"))[specials[0]]
    save("clip", {
        "added_tokens": [{"content": s, "special": True} for s in specials],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}, {"type": "Lowercase"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": CLIP_WORDS}, "behavior": "Removed", "invert": True}, byte_level()]},
        "post_processor": {"type": "RobertaProcessing", "cls": [specials[0], begin], "sep": [specials[1], begin + 1]},
        "model": {"type": "BPE", "end_of_word_suffix": "</w>"}}, data)


def make_t5(folder):
    rules = json.loads(read(folder, "tokenizer.json"))
    data = pack_pieces(rules["model"].pop("vocab"))
    for key in ("version", "truncation", "padding", "decoder"):
        rules.pop(key)
    save("t5xxl", rules, data)


def make_qwen(folder):
    config = json.loads(read(folder, "tokenizer_config.json"))
    listed = sorted((int(i), token) for i, token in config["added_tokens_decoder"].items())
    data = pack_merges(folder, "", [token["content"] for _, token in listed])
    if [i for i, _ in listed] != list(range(listed[0][0], listed[0][0] + len(listed))):
        sys.exit(folder + ": the ids of the added tokens have gaps")
    keys = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
    added = [{key: token[key] for key in keys if token[key]} | {"normalized": token["normalized"]} for _, token in listed]
    rules = {
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": QWEN_WORDS}, "behavior": "Isolated"}, byte_level(use_regex=False)]},
        "model": {"type": "BPE"}}
    save("qwen2.5", rules, data)
    added[-len(QWEN3_TOKENS) :] = [{"content": token, "normalized": False} for token in QWEN3_TOKENS]
    save_rules("qwen3", rules)


def make_byt5():
    """Three special tokens, the 256 bytes in order, and 125 others, as the ByT5Tokenizer of transformers has them."""
    specials = ["<pad>", "</s>", "<unk>"]
    characters = {}
    plain = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    for byte in range(256):
        characters[byte] = chr(byte if byte in plain else 256 + byte - sum(one < byte for one in plain))
    vocabulary = {token: i for i, token in enumerate(specials + [characters[byte] for byte in range(256)])}
    save_rules("byt5", {
        "added_tokens": [{"content": s, "special": True, "lstrip": True, "rstrip": True} for s in specials]
                        + [{"content": "<extra_id_%d>" % i, "special": True} for i in range(125)],
        "pre_tokenizer": byte_level(use_regex=False),
        "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
                           "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []}})


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    make_byt5()
    if len(sys.argv) == 1:
        sys.exit()
    make_clip(os.path.join(sys.argv[1], "clip"))
    make_t5(os.path.join(sys.argv[1], "t5xxl"))
    make_qwen(os.path.join(sys.argv[1], "qwen2.5"))
