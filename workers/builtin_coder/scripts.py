"""The repair search as text to send: stand-alone sources without comments, in short form."""

from __future__ import annotations

import ast
import base64
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

SEARCH_PATH = ".repair/search.py"
_PARTS = tuple(
    f"search_{part}" for part in ("expressions", "statements", "donors", "trial", "drive")
)
_IMPORTS = (
    "import ast, collections, itertools, marshal, os, random, re, shutil, signal, sys, time, zlib"
)
# unpacks itself, and keeps what is compiled for the runs that follow
_LOADER = """import binascii, marshal, os, zlib
P = ".repair/code"
if not os.path.exists(P):
 c = compile(zlib.decompress(binascii.a2b_base64("{packed}")), "search", "exec")
 with open(P, "wb") as f:
  marshal.dump(c, f)
with open(P, "rb") as f:
 exec(marshal.load(f))
"""
# changes rows of the suite without sending it again: `-call` drops rows, `+row` adds one
_CHANGE_ROWS = """import sys
p = sys.argv[1]
s = open(p).read()
for x in sys.stdin.read().splitlines():
 if x[0] == "-":
  s = "".join(y for y in s.splitlines(True) if not y.startswith("    (lambda: " + x[1:] + ","))
 else:
  s = s.replace("\\n]\\n", "\\n" + x[1:] + "\\n]\\n", 1)
open(p, "w").write(s)"""


@cache
def program_text() -> str:
    """The search program in one piece."""
    return "\n".join([_IMPORTS, *map(_short, _PARTS)]) + "\n"


@cache
def search_text() -> str:
    """The search program packed, a quarter of its length: tokens of every later request."""
    packed = base64.b64encode(zlib.compress(program_text().encode(), 9)).decode()
    return _LOADER.replace("{packed}", packed)


def change_rows(path: str, dropped: Sequence[str], added: Sequence[str]) -> str:
    """A shell command that drops the rows of some calls from a suite and adds others."""
    lines = [*(f"-{call}" for call in dropped), *(f"+{row}" for row in added)]
    text = "\n".join(lines)
    return f"python3 -c '{_CHANGE_ROWS}' {path} <<'END'\n{text}\nEND"


def _short(name: str) -> str:
    source = files("workers.builtin_coder").joinpath(f"{name}.py").read_text("utf-8")
    tree = _Shortened().visit(ast.parse(source))
    lines = (line for line in ast.unparse(tree).splitlines() if line.strip())
    return "\n".join(" " * ((len(x) - len(x.lstrip())) // 4) + x.lstrip() for x in lines)


class _Shortened(ast.NodeTransformer):
    """Drops imports, docstrings and annotations."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        docstring = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if docstring else node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        plain = ast.Assign([node.target], node.value)
        return ast.fix_missing_locations(ast.copy_location(plain, node))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)
