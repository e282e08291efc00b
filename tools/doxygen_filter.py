#!/usr/bin/env python3
"""Doxygen input filter: a comment applies to all declarations below it, up to the next empty line,
comment or access specifier; and a Strong<...> is a type of its own.

    doxygen_filter.py header        prints it, with the comment before each of them; as many lines
"""
import re
import sys

COMMENT = re.compile(r"^\s*///(?!<)\s?(.*)$")
# What ends the reach of a comment.
BORDER = re.compile(r"^\s*(?:$|//|#|(?:public|private|protected):|\};?\s*(?://.*)?$|namespace\b)")
# Of a scope, and not of its members.
OPENS_SCOPE = re.compile(r"^\s*(?:class|struct|enum)\b[^;]*$")
SPECIAL = re.compile(r"=\s*delete;|^\s*(?:friend|using \w+::\w+;|~|virtual ~)")
# Doxygen takes two such names for one type, and functions that differ by them for one function.
STRONG = re.compile(r"^using (\w+) = (Strong<.*>);$")


class Reach:
    def __init__(self):
        self.comment = []      # the lines of the comment that reaches here
        self.depth = 0         # open brackets of a declaration
        self.goes_on = False   # a declaration has not ended yet
        self.is_first = False  # the next declaration is the one the comment stands above
        self.in_comment = False

    def line(self, text):
        if found := COMMENT.match(text):
            if not self.in_comment:
                self.comment = []
            self.comment.append(found[1])
            self.in_comment = self.is_first = True
            return text
        self.in_comment = False
        if self.depth == 0 and OPENS_SCOPE.match(text):  # also after a line `template <...>`
            self.comment, self.goes_on = [], False
            return text
        if self.goes_on:
            self.count(text)
            return text
        if BORDER.match(text):
            self.comment = []
            return text
        return self.declaration(text)

    def declaration(self, text):
        self.count(text)
        if self.is_first or not self.comment or "///<" in text or SPECIAL.search(text):
            self.is_first = False
            return text
        indent = len(text) - len(text.lstrip())
        words = " ".join(words or "<br>" for words in self.comment)
        return f"{text[:indent]}/** {words} */ {text[indent:]}"

    def count(self, text):
        code = re.sub(r"//.*", "", text).rstrip()
        self.depth += sum(map(code.count, "({[")) - sum(map(code.count, ")}]"))
        self.goes_on = self.depth > 0 or not code.endswith((";", "}", ","))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        reach = Reach()
        for line in file:
            print(STRONG.sub(r"class \1 : public \2 {};", reach.line(line.rstrip("\n"))))


if __name__ == "__main__":
    main()
