"""Just enough C++ reading for the house rules: comments and strings blanked, includes, functions.

It leans on clang-format's layout and knows no preprocessor; where it is unsure it stays silent.
"""

import bisect
import re

TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<delimiter>[^()\\ ]{0,16})\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def blank_out(text):
    """The text with comments and literals as blanks: same length, same lines."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


class Source:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self._code = None
        self._line_starts = [0] + [match.end() for match in re.finditer("\n", text)]

    @property
    def code(self):
        if self._code is None:
            self._code = blank_out(self.text)
        return self._code

    def line_of(self, offset):
        return bisect.bisect_right(self._line_starts, offset)

    def layer(self):
        parts = self.path.split("/")
        return "/".join(parts[:2]) if parts[0] == "include" else parts[1] if len(parts) > 2 else ""

    def includes(self):
        """(line, header, in quotes)"""
        for match in re.finditer(r'^[ ]*#[ ]*include[ ]+(["<])([^">]+)[">]', self.text, re.M):
            yield self.line_of(match.start()), match.group(2), match.group(1) == '"'

    def await_expressions(self):
        """(offset, text) of each co_await up to the end of its statement or enclosing bracket."""
        for match in re.finditer(r"\bco_await\b", self.code):
            depth, end = 0, match.end()
            while end < len(self.code):
                letter = self.code[end]
                if letter in "([{":
                    depth += 1
                elif letter in ")]}":
                    depth -= 1
                if depth < 0 or (letter == ";" and depth == 0):
                    break
                end += 1
            yield match.start(), self.code[match.end():end]

    def functions(self):
        """(line, name, lines between the braces) of each function that is not a lambda.

        The rows of a table (`= {...}`) are data and don't count.
        """
        stack, start = [], 0
        for match in re.finditer(r"[;{}]", self.code):
            head = self.code[start:match.start()]
            start = match.end()
            if match.group() == "{":
                kind = "table" if re.search(r"=\s*$", head) else self._function_name(head, stack)
                stack.append([match.start(), kind, 0])
            elif match.group() == "}" and stack:
                opened, name, table_lines = stack.pop()
                first, last = self.line_of(opened), self.line_of(match.start())
                if name == "table":
                    table_lines = last - first
                elif name and name != "namespace":
                    yield first, name, last - first - 1 - table_lines
                if stack:
                    stack[-1][2] += table_lines

    @staticmethod
    def _function_name(head, stack):
        """"namespace" for anything that may hold functions, None for what is no function."""
        if stack and stack[-1][1] != "namespace":
            return None
        head = re.sub(r"^[ ]*#.*$", "", head, flags=re.M)
        before_brackets = head.split("(")[0]
        if CONTAINER.search(before_brackets) and "operator" not in before_brackets:
            return "namespace"
        name = re.search(r"([~\w:]+|operator\S+)\s*\(", head)
        return name.group(1) if name else None
