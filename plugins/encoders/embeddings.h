// Textual inversions: files of a few vectors, which a prompt names ("embedding:NAME") and which
// stand for tokens. What is read of them are, in this order, the tensors of Automatic1111's files
// ("string_to_param.*"), that which has the encoder's name ("clip_l", "clip_g", as files for SDXL
// have them), and any other, and of these the first that is as wide as the encoder's tokens. A name
// is looked for in the folders of embeddings, then in those below them, as it stands and with
// ".safetensors", ".pt" and ".bin" behind it. One call's thread.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/node.hpp>

#include "tokenizer/prompt_weights.h"

namespace heddle::encoders {

// Those that one prompt names, for one encoder.
class PromptEmbeddings {
 public:
  struct Reader {
    std::string encoder;
    std::int64_t width = 0;       // of its tokens; 0: it takes no vectors
    std::int64_t vocabulary = 0;  // tokens; the ids of vectors begin behind them
  };
  PromptEmbeddings(std::vector<std::string> places, Reader reader)
      : places_(std::move(places)), reader_(std::move(reader)) {}

  // Opens the file at the first time; its vectors are read by write(). A file that is damaged or
  // has none that fit counts as one that is not there.
  text::EmbeddingIds find(std::string_view name);

  bool any() const { return next_ > 0; }
  bool has(const std::string& name) const;
  // Why files that are there are of no use to the encoder, each with its path.
  const std::vector<std::string>& unfit() const { return unfit_; }
  const Reader& reader() const { return reader_; }

  // The vectors that ids (rows times length) name, and 0 or 1 for what is one or a word; such ids
  // become 0. vectors: (rows times length, width), zeros where there are words.
  void write(std::int32_t* ids, std::int64_t count, float* vectors, float* is_word) const;

 private:
  struct Found {
    std::string path, tensor;
    text::EmbeddingIds ids;
  };
  std::optional<Found> read(const std::filesystem::path& path);

  std::vector<std::string> places_;
  Reader reader_;
  std::map<std::string, std::optional<Found>, std::less<>> found_;
  std::vector<std::string> unfit_;
  std::int32_t next_ = 0;  // vectors so far
};

// For fingerprint(): what tells the files that these inputs' prompts name from others; of prompts
// that are linked, all files of embeddings.
std::uint64_t embeddings_fingerprint(Context& ctx,
                                     const std::vector<const Input<std::string>*>& prompts);

}  // namespace heddle::encoders
