#pragma once

#include <string>
#include <string_view>

namespace tenure::sys {

/// A page for man(1), written from top to bottom. Nothing in a text is taken for a request of
/// troff.
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
  /// Parted by empty lines.
  ManPage& paragraphs(std::string_view text);
  /// How it is called: what is written as it stands, and what is put in its place.
  ManPage& call(std::string_view command, std::string_view arguments);
  /// Something, and below it what it means.
  ManPage& term(std::string_view name, std::string_view meaning);
  /// The same for another page.
  ManPage& page_term(std::string_view name, int section, std::string_view meaning);
  /// As it stands, line by line.
  ManPage& verbatim(std::string_view text);
  /// The end: other pages.
  ManPage& see_also(std::string_view name, int section);

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  bool has_references_ = false;
};

}  // namespace tenure::sys
