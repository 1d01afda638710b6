// The opcodes of pickles that pickle.cpp reads, as Python's module pickletools describes them.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::engine {

namespace pickle_op {

enum Op : std::uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersistent = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kEmptyDict = '}',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kEmptyList = ']',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kBinFloat = 'G',
  kProtocol = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortUnicode = 0x8c,
  kUnicode8 = 0x8d,
  kBytes8 = 0x8e,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

}  // namespace pickle_op

// What an opcode does that only pickles of other things have; "" for any other.
inline std::string_view foreign_op(std::uint8_t op) {
  switch (op) {
    case 0x81:
    case 0x92:
    case 'i':
    case 'o':
      return "makes an object of a class";
    case 0x82:
    case 0x83:
    case 0x84:
      return "names an object by a number of Python's extension registry";
    case 0x8f:
    case 0x90:
    case 0x91:
      return "holds a set";
    case 0x96:
    case 0x97:
    case 0x98:
      return "holds a buffer";
    case 'F':
    case 'I':
    case 'L':
    case 'S':
    case 'V':
    case 'P':
    case 'd':
    case 'g':
    case 'l':
    case 'p':
      return "is of protocol 0";
  }
  return "";
}

}  // namespace heddle::engine
