"""What a program means to the published evaluator, on whatever Python this is.

It runs `exec` and `eval` inside a function of Python 3.11, once a test: what a program's top level
binds lands in a dict of locals that function bodies cannot see. Scores were taken on 3.11; later
versions see more (inlined comprehensions, lazy annotations, freer f-strings), so programs are
rewritten to 3.11's meaning first.
"""

import ast
import io
import sys
import tokenize


def parse(source: str) -> ast.Module:
    """The program as Python 3.11 reads it. Raises: SyntaxError, ValueError, RecursionError."""
    module = ast.parse(source, feature_version=(3, 11))
    _refuse_new_f_strings(source)
    lazy = any(isinstance(s, ast.ImportFrom) and s.module == "__future__" for s in module.body)
    tree = _Rewrite(eager_annotations=not lazy).visit(module)
    return ast.fix_missing_locations(tree)


def parse_test(source: str) -> ast.Expression:
    """A test's expression as Python 3.11 reads it. Raises: like parse."""
    tree = ast.parse(source.lstrip(" \t"), mode="eval", feature_version=(3, 11))
    _refuse_new_f_strings(source)
    return ast.fix_missing_locations(_Rewrite(eager_annotations=False).visit(tree))


class _Rewrite(ast.NodeTransformer):
    """Top-level comprehensions get their own scope again, annotations are evaluated at once."""

    def __init__(self, eager_annotations: bool):
        self._eager = eager_annotations

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_FunctionDef(self, node):
        return self._function(node)

    def visit_AsyncFunctionDef(self, node):
        return self._function(node)

    def _function(self, node):
        a = node.args
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        a.defaults = [self.visit(d) for d in a.defaults]
        a.kw_defaults = [d and self.visit(d) for d in a.kw_defaults]
        node.body = _Body(self._eager).statements(node.body)
        return [*self._annotations(node), node] if self._eager else node

    def _annotations(self, node) -> list[ast.stmt]:
        a = node.args
        every = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        found = [arg.annotation for arg in every if arg.annotation]
        for arg in every:
            arg.annotation = None
        found += [node.returns] if node.returns else []
        node.returns = None
        return [ast.Expr(ast.Tuple(found, ast.Load()))] if found else []

    def visit_ClassDef(self, node: ast.ClassDef):
        node.body = _Body(self._eager, in_class=True).statements(node.body)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign):
        self.generic_visit(node)
        return [node, ast.Expr(node.annotation)] if self._eager else node

    def visit_ListComp(self, node):
        return self._scoped(node)

    def visit_SetComp(self, node):
        return self._scoped(node)

    def visit_DictComp(self, node):
        return self._scoped(node)

    def _scoped(self, node):
        """`[e for x in it]` as `(lambda it: [e for x in it])(it)`; a walrus binds outside: left."""
        if any(isinstance(n, ast.NamedExpr | ast.Await) for n in ast.walk(node)):
            return node
        first = node.generators[0]
        argument = ast.arguments([], [ast.arg(".0")], None, [], [], None, [])
        outer, first.iter = self.visit(first.iter), ast.Name(".0", ast.Load())
        return ast.Call(ast.Lambda(argument, node), [outer], [])


class _Body(_Rewrite):
    """Inside a function or a class: nested functions' annotations count, comprehensions don't."""

    def __init__(self, eager_annotations: bool, in_class: bool = False):
        super().__init__(eager_annotations)
        self._in_class = in_class

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new]
        return found

    def visit_AnnAssign(self, node: ast.AnnAssign):
        eager = self._eager and self._in_class
        return [node, ast.Expr(node.annotation)] if eager else node

    def _scoped(self, node):
        return node


def _refuse_new_f_strings(source: str) -> None:
    """Raise SyntaxError for an f-string that only Python 3.12 reads."""
    if sys.version_info < (3, 12):
        return
    quotes: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_END":
            quotes.pop()
        text_of_outermost = kind == "FSTRING_MIDDLE" and len(quotes) == 1
        if quotes and not text_of_outermost and _new_inside(kind, token.string, quotes):
            raise SyntaxError("f-string: not valid before Python 3.12")
        if kind == "FSTRING_START":
            quotes.append(token.string.lstrip("fFrR"))


def _new_inside(kind: str, text: str, quotes: list[str]) -> bool:
    """Whether a token of an f-string's expression could not stand there in Python 3.11."""
    if kind == "COMMENT" or "\\" in text:
        return True
    if kind == "NL":
        return len(quotes[0]) == 1
    return any(quote in text for quote in quotes)
