#include "sim/scenario/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <set>
#include <sstream>

#include "base/plain_text.h"

namespace gpuassay::sim {
namespace {

// Ends the parse from inside yaml-cpp; never leaves this file.
struct Refused {
  int line, column;
  std::string text;
};

[[noreturn]] void Refuse(const YAML::Mark& mark, std::string text) {
  throw Refused{mark.line + 1, mark.column + 1, std::move(text)};
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode Take() { return root_.items.empty() ? YamlNode{} : std::move(root_.items.front()); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, YamlNode::Kind::kNull, "", anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "aliases are not supported here; name an activity under `profiles` instead");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(mark, tag);
    Add(mark, YamlNode::Kind::kScalar, value, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(mark, YamlNode::Kind::kSequence, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Open(mark, YamlNode::Kind::kMap, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  // "?" and "!" are what yaml-cpp calls plain and quoted scalars.
  static void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      Refuse(mark, "tags are not supported here; write the value alone");
    }
  }

  YamlNode& Parent() { return open_.empty() ? root_ : *open_.back(); }

  YamlNode& Add(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& text,
                YAML::anchor_t anchor) {
    if (anchor != 0) {
      Refuse(mark, "anchors are not supported here; name an activity under `profiles` instead");
    }
    if (++nodes_ > kYamlNodesMax) {
      Refuse(mark, fmt::format("more than {} values; use `count` and `repeat`", kYamlNodesMax));
    }
    YamlNode& parent = Parent();
    const bool is_key = parent.kind == YamlNode::Kind::kMap && parent.items.size() % 2 == 0;
    if (is_key) {
      CheckKey(mark, kind, text);
    }
    parent.items.push_back({kind, text, {}, mark.line + 1, mark.column + 1});
    return parent.items.back();
  }

  void CheckKey(const YAML::Mark& mark, YamlNode::Kind kind, const std::string& text) {
    if (kind != YamlNode::Kind::kScalar) {
      Refuse(mark, "a key must be a word; is a bracket or a brace left open?");
    }
    if (!keys_.back().insert(text).second) {
      Refuse(mark, fmt::format("key `{}` stands here twice; keep one", text));
    }
  }

  // Pointers to open nodes stay valid: a node's siblings are only added after it is closed.
  void Open(const YAML::Mark& mark, YamlNode::Kind kind, YAML::anchor_t anchor) {
    if (open_.size() >= kYamlDepthMax) {
      Refuse(mark, fmt::format("nested deeper than {} levels", kYamlDepthMax));
    }
    open_.push_back(&Add(mark, kind, "", anchor));
    keys_.emplace_back();
  }
  void Close() {
    open_.pop_back();
    keys_.pop_back();
  }

  YamlNode root_{YamlNode::Kind::kSequence, "", {}, 1, 1};
  std::vector<YamlNode*> open_;
  std::vector<std::set<std::string, std::less<>>> keys_;
  std::size_t nodes_ = 0;
};

// Byte classes that yaml-cpp would turn into something else, or read as another encoding.
Result<void> CheckBytes(std::string_view yaml, std::string_view file) {
  if (yaml.size() > kYamlBytesMax) {
    return Fail(ErrorCode::kMalformed,
                PlaceMessage(file, 1, 1,
                             fmt::format("larger than {} KiB; use `count` and `repeat`",
                                         kYamlBytesMax / 1024)));
  }
  int line = 1;
  int column = 1;
  for (const char c : yaml) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte >= 0xFE) {
      return Fail(ErrorCode::kMalformed,
                  PlaceMessage(file, line, column,
                               fmt::format("byte 0x{:02X} is not text; write UTF-8", byte)));
    }
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  return {};
}

}  // namespace

std::string PlaceMessage(std::string_view file, int line, int column, std::string_view text) {
  return OneLine(fmt::format("{}:{}:{}: {}", file, line, column, text));
}

Result<YamlNode> ParseYamlTree(std::string_view yaml, std::string_view file) {
  if (const Result<void> bytes = CheckBytes(yaml, file); !bytes) {
    return std::unexpected(bytes.error());
  }
  const auto fail = [&](int line, int column, std::string_view text) {
    return Fail(ErrorCode::kMalformed, PlaceMessage(file, line, column, text));
  };
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    TreeBuilder builder;
    parser.HandleNextDocument(builder);
    YamlNode root = builder.Take();
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return fail(root.line, root.column, "a second document follows; keep one per file");
    }
    return root;
  } catch (const Refused& refused) {
    return fail(refused.line, refused.column, refused.text);
  } catch (const YAML::Exception& error) {
    return fail(error.mark.line + 1, error.mark.column + 1, "not YAML: " + error.msg);
  } catch (const std::exception& error) {
    return fail(1, 1, fmt::format("not YAML: {}", error.what()));
  }
}

}  // namespace gpuassay::sim
