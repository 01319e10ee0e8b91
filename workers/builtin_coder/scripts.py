"""The repair search as text to send: stand-alone sources without comments, in short form."""

from __future__ import annotations

import ast
from functools import cache
from importlib.resources import files

SEARCH_PATH = ".repair/search.py"
_IMPORTS = "import ast, collections, importlib, itertools, json, os, random, signal, sys, time"
_NO_STATEMENTS = "def statement_edits(source, values):\n return []"


@cache
def search_text(statements: bool) -> str:
    """The search program; with `statements` it also edits statements, names and guards."""
    middle = _short("search_statements") if statements else _NO_STATEMENTS
    parts = [_IMPORTS, _short("search_expressions"), middle, _short("search_drive")]
    return "\n".join(parts) + "\n"


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

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)
