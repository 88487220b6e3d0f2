"""What can be wrong with a line: the mutants of a source file, from its syntax tree.

Each operator is a slip that a person makes: a comparison off by one or turned around, `and` for `or`, a forgotten
statement, the wrong label of a switch, a return that is missing or gives another value, a number off by one.
Assertions are left alone, since they must hold whatever the code does, and so is what a macro wrote.
"""

import dataclasses
import re

from support import explained

RELATIONAL = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
    "==": ("!=",), "!=": ("==",),
}
ARITHMETIC = {
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",), "<<": (">>",), ">>": ("<<",),
    "&": ("|",), "|": ("&",), "^": ("&",),
    "+=": ("-=",), "-=": ("+=",), "*=": ("/=",), "/=": ("*=",), "|=": ("&=",), "&=": ("|=",),
}
LOGICAL = {"&&": "||", "||": "&&"}

# How the text of a mutant stands in the source.
EXPRESSION, STATEMENT, REMOVAL, SWITCH, CONDITION, CONSTANT = (
    "expression", "statement", "removal", "switch", "condition", "constant")

BUILTIN_INTEGER = re.compile(r"^(const )?(unsigned |signed )?(char|short|int|long|long long)$|^(const )?unsigned$")
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl"}


@dataclasses.dataclass
class Mutant:
    operator: str
    form: str
    file: str
    begin: int      # of the region of the text that it changes
    end: int
    original: str   # what stands there
    text: str       # what stands there instead
    edits: tuple    # (begin, end, text): the change, in the file
    line: int = 0
    line_text: str = ""  # the line, as the list of equivalent mutants quotes it
    labels: tuple = ()  # of a swapped switch
    cast: str = ""      # what a number is converted to, where the braces around it ask for it
    name: str = ""      # of the variable that a condition declares
    id: int = 0

    def change(self):
        """The change in one line, for people and for the list of equivalent mutants."""
        return one_line(self.original), one_line(self.text)


def one_line(text):
    return " ".join(re.sub(r"//[^\n]*", "", text).split())


def mark_last_statement(function):
    """A return there cannot be forgotten without a word of the compiler."""
    for body in function.inner:
        if body.kind == "CompoundStmt" and body.inner:
            body.inner[-1].data["last"] = True


def between(text, left, right):
    """The operator between two operands: whatever stands there but spaces, comments and parentheses."""
    return re.sub(r"//[^\n]*|/\*.*?\*/|[\s()]", "", text[left.place[2]:right.place[1]])


class Finder:
    """Finds the mutants of the files in `sources` ({path: text}) in the trees that are given to it."""

    def __init__(self, sources):
        self.sources = sources
        self.found = {}
        self.quoted = {}
        self.enumerators = {}  # id of an enumerator: names of its enumeration's, in order

    def search(self, trees):
        for tree in trees:
            for node in tree.all():
                if node.kind == "EnumDecl":
                    members = [each for each in node.inner if each.kind == "EnumConstantDecl"]
                    for each in members:
                        self.enumerators[each.data["id"]] = [other.data["name"] for other in members]
        for tree in trees:
            if tree.place and tree.place[0] in self.sources:
                self.visit(tree, Context())

    def mutants(self):
        ordered = sorted(self.found.values(), key=lambda each: (each.file, each.begin, -each.end, each.operator))
        for number, each in enumerate(ordered, 1):
            each.id = number
        return ordered

    # Walking.

    def visit(self, node, context):
        if node.macro or not self.is_ours(node) or self.is_left_alone(node):
            return
        context = context.at(node)
        if node.kind in FUNCTIONS:
            mark_last_statement(node)
        handler = getattr(self, "visit_" + node.kind, None)
        if handler and node.place:
            handler(node, context)
        for child in self.children(node):
            self.visit(child, context.child(node, child))

    def is_ours(self, node):
        return node.place is None or node.place[0] in self.sources

    @staticmethod
    def is_left_alone(node):
        data = node.data
        return (data.get("isImplicit") or data.get("explicitlyDefaulted")
                or node.kind in ("StaticAssertDecl", "TemplateArgument", "CXXNoexceptExpr", "FriendDecl",
                                 "UnaryExprOrTypeTraitExpr", "ConceptSpecializationExpr")
                or node.kind.endswith(("Attr", "Type")))

    def children(self, node):
        if node.kind == "CXXRewrittenBinaryOperator":
            return self.operands(node)
        if node.kind == "CXXForRangeStmt":
            return node.inner[-1:]  # all others but the range are the compiler's
        if node.kind == "LambdaExpr":
            return [each for each in node.inner if each.kind == "CXXRecordDecl"]
        if node.kind == "IfStmt" and node.data.get("hasVar"):
            return [each for each in node.inner if each.kind != "VarDecl"]
        return node.inner

    # What an operator needs.

    def text(self, node):
        file, begin, end = node.place
        return self.sources[file][begin:end]

    def add(self, operator, form, node, text, *, until=None, edits=None, **more):
        file, begin, end = node.place
        end = until or end
        original = self.sources[file][begin:end]
        plain = f"({text})" if form in (EXPRESSION, CONSTANT) else text
        key = (file, begin, end, operator, text)
        if text.strip() == original.strip() or key in self.found:
            return
        line = self.sources[file].count("\n", 0, begin) + 1
        if (file, line) not in self.quoted:
            self.quoted[file, line] = explained.quotation(self.sources[file].splitlines(), line)
        self.found[key] = Mutant(operator, form, file, begin, end, original, text,
                                 edits or ((begin, end, plain),), line,
                                 self.quoted[file, line], **more)

    def expression(self, operator, node, text, context):
        self.add(operator, CONSTANT if context.constant else EXPRESSION, node, text)

    def operands(self, node):
        """Left and right of a binary operator, in the order of the text; nothing if it is none."""
        inner = node.inner
        if node.kind == "CXXRewrittenBinaryOperator":
            inner = self.rewritten(node)
        elif node.kind == "CXXOperatorCallExpr":
            inner = inner[1:]
        if len(inner) != 2 or any(each.place is None for each in inner):
            return []
        return sorted(inner, key=lambda each: each.place[1])

    def rewritten(self, node):
        """`a < b` that the compiler made of `(a <=> b) < 0`, or `a != b` of `!(a == b)`."""
        for each in node.all():
            if each.kind in ("CXXOperatorCallExpr", "CXXMemberCallExpr", "CallExpr") and len(each.inner) == 3:
                names = {ref.data.get("referencedDecl", {}).get("name") for ref in each.inner[0].all()}
                if names & {"operator<=>", "operator=="}:
                    return each.inner[1:]
        return []

    # The operators.

    def visit_BinaryOperator(self, node, context):
        pair = self.operands(node)
        if not pair:
            return
        file = node.place[0]
        spelled = between(self.sources[file], *pair)
        left, right = map(self.text, pair)
        for other in RELATIONAL.get(spelled, ()):
            self.expression("relational", node, f"{left} {other} {right}", context)
        if spelled in ("<<", ">>") and node.kind == "CXXOperatorCallExpr":
            return  # a stream
        for other in ARITHMETIC.get(spelled, ()):
            self.expression("arithmetic", node, f"{left} {other} {right}", context)
        if spelled in LOGICAL:
            self.expression("logical", node, f"({left}) {LOGICAL[spelled]} ({right})", context)
            self.expression("operand", node, left, context)
            self.expression("operand", node, right, context)
            for operand in pair:
                self.condition(operand, context)

    visit_CompoundAssignOperator = visit_BinaryOperator
    visit_CXXOperatorCallExpr = visit_BinaryOperator
    visit_CXXRewrittenBinaryOperator = visit_BinaryOperator

    def visit_UnaryOperator(self, node, context):
        text = self.text(node)
        if node.opcode() in ("++", "--"):
            other = "--" if node.opcode() == "++" else "++"
            swapped = text[:-2] + other if node.data.get("isPostfix") else other + text[2:]
            self.expression("step", node, swapped, context)
        elif node.opcode() == "!":
            self.expression("negation", node, f"static_cast<bool>({text[1:].strip()})", context)

    def visit_IntegerLiteral(self, node, context):
        text = self.text(node)
        if not re.match(r"^[0-9]", text):
            return
        value = int(re.sub(r"[uUlLzZ']", "", text) or "0", 0)
        for sign in ("+", "-"):
            if sign == "-" and value == 0:
                continue
            form = CONSTANT if context.constant else EXPRESSION
            self.add("number", form, node, f"{text} {sign} 1", cast="" if context.constant else context.cast)

    def visit_FloatingLiteral(self, node, context):
        self.expression("number", node, f"{self.text(node)} + 1", context)

    def visit_CXXBoolLiteralExpr(self, node, context):
        self.expression("truth", node, "false" if self.text(node) == "true" else "true", context)

    def visit_DeclRefExpr(self, node, context):
        reference = node.data.get("referencedDecl", {})
        names = self.enumerators.get(reference.get("id"), [])
        if reference.get("kind") != "EnumConstantDecl" or len(names) < 2 or context.label:
            return
        text = self.text(node)
        mine = text.rsplit("::", 1)[-1]
        if mine in names:
            other = names[(names.index(mine) + 1) % len(names)]
            self.expression("enumerator", node, text[:len(text) - len(mine)] + other, context)

    def visit_IfStmt(self, node, context):
        if node.data.get("hasVar"):
            declared = node.inner[0]
            variable = next(each for each in declared.inner if each.kind == "VarDecl")
            if declared.place and declared.place[0] in self.sources:
                text = self.text(declared).rstrip(";")
                name = variable.data["name"]
                self.add("condition", CONDITION, declared, f"{text}; !{name}", name=name)
            return
        self.condition(node.inner[1 if node.data.get("hasInit") else 0], context)

    def visit_WhileStmt(self, node, context):
        self.condition(node.inner[0], context)

    def visit_ConditionalOperator(self, node, context):
        self.condition(node.inner[0], context)

    def condition(self, node, context):
        """Turns it around, unless an operator within does the same."""
        core = node
        while core.kind in ("ExprWithCleanups", "ImplicitCastExpr", "CXXBindTemporaryExpr", "ParenExpr",
                            "MaterializeTemporaryExpr") and core.inner:
            core = core.inner[0]
        if core.place is None or core.place[0] not in self.sources or core.macro:
            return
        pair = self.operands(core) if hasattr(self, "visit_" + core.kind) else []
        if core.kind == "UnaryOperator" and core.opcode() == "!" or core.kind == "CXXBoolLiteralExpr":
            return
        if pair and between(self.sources[core.place[0]], *pair) in {**RELATIONAL, **LOGICAL}:
            return
        self.expression("condition", core, f"!({self.text(core)})", context)

    def visit_ReturnStmt(self, node, context):
        file, _, end = node.place
        text = self.sources[file]
        until = text.index(";", end) + 1
        if not node.data.get("last"):
            self.add("return removed", REMOVAL, node, ";", until=until)
        if not node.inner or context.constant:
            return
        value = node.inner[0]
        for other in self.other_values(value, context):
            self.add("returned value", STATEMENT, node, f"return {other};", until=until)

    def other_values(self, value, context):
        result = context.result
        text = self.text(value) if value.place else ""
        if result == "bool":
            self.condition(value, context)
        elif result.endswith("*"):
            yield from ["nullptr"] if text != "nullptr" else []
        elif result.startswith("std::optional<"):
            yield from ["std::nullopt"] if text != "std::nullopt" else []
        elif result not in ("", "void", "auto", "decltype(auto)") and not result.endswith("&"):
            yield "{}"

    def visit_BreakStmt(self, node, context):
        file, _, end = node.place
        self.add("break removed", REMOVAL, node, ";", until=self.sources[file].index(";", end) + 1)

    visit_ContinueStmt = visit_BreakStmt

    def visit_SwitchStmt(self, node, context):
        value, body = node.inner[-2], node.inner[-1]
        labels = [each.inner[0] for each in body.inner if each.kind == "CaseStmt" and each.inner[0].place]
        for one, other in zip(labels, labels[1:]):
            first, second = self.text(one), self.text(other)
            edits = ((one.place[1], one.place[2], second), (other.place[1], other.place[2], first))
            self.add("label swapped", SWITCH, value, f"{first} <-> {second}", edits=edits,
                     labels=(first, second))

    def statement(self, node):
        """A call or an assignment that is forgotten."""
        if not node.kind.endswith(("Expr", "Operator", "ExprWithCleanups")) or node.macro or not node.place:
            return
        file, _, end = node.place
        text = self.sources[file]
        if file in self.sources and text[end:].lstrip().startswith(";"):
            self.add("statement removed", REMOVAL, node, ";", until=text.index(";", end) + 1)

    def visit_CompoundStmt(self, node, context):
        for each in node.inner:
            self.statement(each)

    def visit_CaseStmt(self, node, context):
        self.statement(node.inner[-1])

    visit_DefaultStmt = visit_CaseStmt


@dataclasses.dataclass(frozen=True)
class Context:
    result: str = ""        # what the function returns
    constant: bool = False  # the compiler evaluates it
    label: bool = False     # of a switch
    cast: str = ""          # the integer type that a number is converted to

    def at(self, node):
        if node.kind in FUNCTIONS:
            returned = node.data.get("type", {}).get("qualType", "")
            result = returned.rsplit("-> ", 1)[1] if "-> " in returned else returned.split("(", 1)[0].strip()
            return Context(result=result)
        if node.kind == "VarDecl" and node.data.get("constexpr") or node.kind == "EnumConstantDecl":
            return dataclasses.replace(self, constant=True)
        if node.kind == "ImplicitCastExpr":
            kept = self.cast or (node.type() if BUILTIN_INTEGER.match(node.type()) else "")
            return dataclasses.replace(self, cast=kept)
        if node.kind in ("IntegerLiteral", "UnaryOperator"):
            return self
        return dataclasses.replace(self, cast="")

    def child(self, node, child):
        label = self.label or node.kind == "CaseStmt" and child is node.inner[0]
        return dataclasses.replace(self, label=label)
