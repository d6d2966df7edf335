"""Statements by chance that name another database, with what readers of SQL cut differently in them and around it."""
import random

LITERALS = ["1", "1.5", "1e1", "1.", "0x41", "'a'", '"b"', "x'41'", "b'1'", "@a", "@`a`", "@@version", "NULL", "N'c'", "_utf8'd'", "-1",
            ".5", "1e-1", "a", "t.a", "`a`", "(1)", "''", "'it''s'", "'x\\'y'", "1--1", "1 - -1", "/**/1", "/*!99999 x*/1", "/*!1*/",
            "/*M!1*/", "1/*!*/", "!1", "1.5e3", "1e", "1st", "`a``b`", "'a' 'b'", "`t`.`a`", "orders.t.a", "t .a", "t. a", "1.e1"]
BLANKS = [" ", "", "", "", "", "\xa0", "/**/", "\t", "\n", " # c\n", " -- c\n", "/* ' */", "/*!*/", "\x0b", "\x0c", "--\t\n", "/*!50000*/", "/*+ x */",
          ' /*"*/ ']
OTHERS = ["other.secret", "`other`.`secret`", "other . secret", "`other`/**/.secret", "other./**/secret", "(other.secret)", "other.secret s",
          "t, other.secret", "t JOIN other.secret", "t u, t v, other.secret", "t NATURAL JOIN other.secret", "(t JOIN other.secret)",
          "(SELECT a FROM other.secret) z", "t STRAIGHT_JOIN other.secret", "t LEFT JOIN other.secret ON 1", "DUAL, other.secret",
          "t AS x JOIN (other.secret) ON 1", "t USE INDEX (), other.secret", "other 1.e.secret", "t u JOIN t v ON u.id=1.5JOIN other.secret"]
CALLS = ["TRIM(LEADING 'x' FROM %s)", "EXTRACT(YEAR FROM %s)", "SUBSTRING(%s FROM 1)", "MID(%s FROM 1 FOR 2)", "COUNT(%s)", "IF(1,%s,2)",
         "POSITION('x' IN %s)", "DATE(%s)", "CASE WHEN 1 THEN %s END", "(%s)", "EXISTS(%s)", "trim(%s)"]
MARKS = ["", "", "/**/", "'", '"', "`", "\\", "1", "e", ".", " ", "\n", "/*", "*/", "#", "--", "@", "(", ")", ",", ";", "\xa0", "$", "/*!",
         "/*!50000 ", "-", "%"]


def statement(r):
    """One, as bytes of latin1."""
    def word(w):
        return r.choice(BLANKS) + r.choice([w, w.lower(), w.title()]) + r.choice(BLANKS)

    def nested():
        return "(" + word("SELECT") + r.choice(["a", "*", "max(a)"]) + word("FROM") + r.choice(OTHERS) + ")"
    text = r.choice([
        lambda: word("SELECT") + r.choice(LITERALS + ["*", r.choice(CALLS) % nested()]) + "," + r.choice(LITERALS) + word("FROM") +
        r.choice(OTHERS),
        lambda: word("SELECT") + r.choice(LITERALS) + word("FROM") + r.choice(OTHERS),
        lambda: word("SELECT") + nested(),
        lambda: "SELECT a FROM t WHERE a IN " + nested() + word("UNION") + word("SELECT") + "a" + word("FROM") + r.choice(OTHERS),
        lambda: word("TABLE") + r.choice(OTHERS),
        lambda: word("WITH") + "q AS " + nested() + " SELECT * FROM q",
        lambda: word("SELECT") + r.choice(CALLS) % nested(),
    ])()
    for _ in range(r.randrange(3)):
        at = r.randrange(len(text) + 1)
        text = text[:at] + r.choice(MARKS) + text[at + r.randrange(2):]
    return text.encode("latin1")


def statements(n, seed):
    r = random.Random(seed)
    return [statement(r) for _ in range(n)]
