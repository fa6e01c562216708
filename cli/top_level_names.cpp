#include "cli/top_level_names.hpp"

#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

namespace assay::cli {
namespace {

class NameCollector final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::set<std::string, std::less<>> take() { return std::move(names_); }

  bool key(std::string& name) override {
    if (depth_ == 1) names_.insert(std::move(name));
    return true;
  }
  bool start_object(std::size_t /*members*/) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t /*items*/) override { return enter(); }
  bool end_array() override { return leave(); }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool enter() {
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  std::set<std::string, std::less<>> names_;
  std::size_t depth_ = 0;
};

}  // namespace

std::optional<std::set<std::string, std::less<>>> top_level_names(std::string_view json) {
  NameCollector collector;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &collector)) return std::nullopt;
  return collector.take();
}

}  // namespace assay::cli
