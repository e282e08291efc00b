#pragma once

#include <string>
#include <string_view>

namespace tenure::sys {

/// Writer of a page for man(1) in troff, from top to bottom. Escapes all texts, so that none is
/// read as a troff request. Not thread safe.
class ManPage {
 public:
  struct Title {
    std::string_view name{};     ///< "tenured"
    int section = 1;             ///< 8
    std::string_view source{};   ///< "tenure 1.2.3"
    std::string_view summary{};  ///< One line.
  };
  explicit ManPage(const Title& title);

  ManPage& section(std::string_view title);
  /// Paragraphs, separated by empty lines.
  ManPage& paragraphs(std::string_view text);
  /// Synopsis line: the command in bold, its arguments in italics.
  ManPage& synopsis(std::string_view command, std::string_view arguments);
  /// Definition: a term, and its meaning indented below it.
  ManPage& term(std::string_view name, std::string_view meaning);
  /// Definition whose term is another page.
  ManPage& page_term(std::string_view name, int section, std::string_view meaning);
  /// Preformatted text.
  ManPage& verbatim(std::string_view text);
  /// Reference to another page; the last part of a page.
  ManPage& see_also(std::string_view name, int section);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  bool has_references_ = false;
};

}  // namespace tenure::sys
