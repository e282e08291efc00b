#include "sys/man_page.hpp"

#include <algorithm>

namespace tenure::sys {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  bool begins_line = true;
  for (const char byte : text) {
    if (begins_line && (byte == '.' || byte == '\'')) {
      out += "\\&";
    }
    out += byte == '\\' ? "\\e" : byte == '-' ? "\\-" : std::string(1, byte);
    begins_line = byte == '\n';
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char byte) {
    return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte;
  });
  return out;
}

}  // namespace

ManPage::ManPage(const Title& title)
    : text_(".TH " + upper(title.name) + " " + std::to_string(title.section) + " \"\" \"" +
            std::string(title.source) + "\" \"Tenure\"\n.SH NAME\n" + escaped(title.name) +
            " \\- " + escaped(title.summary) + "\n") {}

ManPage& ManPage::section(std::string_view title) {
  text_ += ".SH \"" + upper(title) + "\"\n";
  return *this;
}

ManPage& ManPage::paragraphs(std::string_view text) {
  for (bool is_first = true; !text.empty(); is_first = false) {
    const auto end = std::min(text.find("\n\n"), text.size());
    text_ += (is_first ? "" : ".PP\n") + escaped(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return *this;
}

ManPage& ManPage::synopsis(std::string_view command, std::string_view arguments) {
  text_ += ".PP\n.B " + escaped(command) + "\n";
  text_ += arguments.empty() ? "" : escaped(arguments) + "\n";
  return *this;
}

ManPage& ManPage::term(std::string_view name, std::string_view meaning) {
  text_ += ".TP\n.B " + escaped(name) + "\n" + escaped(meaning) + "\n";
  return *this;
}

ManPage& ManPage::page_term(std::string_view name, int section, std::string_view meaning) {
  text_ += ".TP\n.BR " + escaped(name) + " (" + std::to_string(section) + ")\n" + escaped(meaning) +
           "\n";
  return *this;
}

ManPage& ManPage::verbatim(std::string_view text) {
  text_ += ".nf\n" + escaped(text) + (text.ends_with('\n') ? "" : "\n") + ".fi\n";
  return *this;
}

ManPage& ManPage::see_also(std::string_view name, int section) {
  if (!has_references_) {
    has_references_ = true;
    this->section("see also");
  }
  text_ += ".BR " + escaped(name) + " (" + std::to_string(section) + ")\n";
  return *this;
}

}  // namespace tenure::sys
