/* Parses a statement with libpg_query and walks its tree, which that library gives as JSON: names
 * of its node types are keys there, and what the statement's author wrote is only ever a value. The
 * walk keeps where it stands and nothing of the tree. */
#include "statement.h"

#include "assertion.h"
#include "parser_stack.h"
#include "postgres_startup.h"
#include "websocket.h"

#include <pg_query.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 16384, TEXT_MAX = 128 };
enum { SHALLOW = 512 }; /* bytes; what is so short needs no room of its own */

/* Keys that mean something to us; all others are KEY_NONE. */
enum key {
    KEY_NONE,
    KEY_ALTER_COMMAND,
    KEY_ALTER_TABLE,
    KEY_ARG,
    KEY_ARGS,
    KEY_COLUMN,
    KEY_CONST,
    KEY_COPY,
    KEY_DEFELEM,
    KEY_DEFINE,
    KEY_DEFNAME,
    KEY_DISCARD,
    KEY_FIELDS,
    KEY_FILENAME,
    KEY_FUNC,
    KEY_FUNCNAME,
    KEY_INDIRECTION,
    KEY_INTO,
    KEY_IS_FROM,
    KEY_IS_PROGRAM,
    KEY_IVAL,
    KEY_KIND,
    KEY_LOCK,
    KEY_LOCKING,
    KEY_MODE,
    KEY_NAME,
    KEY_OBJECT_KIND,
    KEY_OBJTYPE,
    KEY_RELNAME,
    KEY_SET,
    KEY_STRING,
    KEY_SUBTYPE,
    KEY_SVAL,
    KEY_TARGET,
    KEY_TRANSACTION,
};

static const struct {
    const char *word;
    enum key key;
} words[] = {
    {"AlterTableCmd", KEY_ALTER_COMMAND},
    {"AlterTableStmt", KEY_ALTER_TABLE},
    {"arg", KEY_ARG},
    {"args", KEY_ARGS},
    {"ColumnRef", KEY_COLUMN},
    {"A_Const", KEY_CONST},
    {"CopyStmt", KEY_COPY},
    {"DefElem", KEY_DEFELEM},
    {"DefineStmt", KEY_DEFINE},
    {"defname", KEY_DEFNAME},
    {"DiscardStmt", KEY_DISCARD},
    {"fields", KEY_FIELDS},
    {"filename", KEY_FILENAME},
    {"FuncCall", KEY_FUNC},
    {"funccall", KEY_FUNC}, /* of CallStmt, whose only kind of node it is */
    {"funcname", KEY_FUNCNAME},
    {"indirection", KEY_INDIRECTION},
    {"into", KEY_INTO},
    {"intoClause", KEY_INTO},
    {"is_from", KEY_IS_FROM},
    {"is_program", KEY_IS_PROGRAM},
    {"ival", KEY_IVAL},
    {"kind", KEY_KIND},
    {"LockStmt", KEY_LOCK},
    {"lockingClause", KEY_LOCKING},
    {"mode", KEY_MODE},
    {"name", KEY_NAME},
    {"removeType", KEY_OBJECT_KIND}, /* of DROP, */
    {"renameType", KEY_OBJECT_KIND}, /* of RENAME, */
    {"objectType", KEY_OBJECT_KIND}, /* of SET SCHEMA */
    {"objtype", KEY_OBJTYPE},
    {"relname", KEY_RELNAME},
    {"VariableSetStmt", KEY_SET},
    {"String", KEY_STRING},
    {"subtype", KEY_SUBTYPE},
    {"sval", KEY_SVAL},
    {"target", KEY_TARGET},
    {"TransactionStmt", KEY_TRANSACTION},
};

/* Kinds of statements that a session may use, each with the classes that it is of whatever it
 * says. Others are refused: they make code, rights, roles, or ways to other servers. */
static const struct {
    const char *word;
    unsigned classes;
} kinds[] = {
    {"SelectStmt", STATEMENT_READ},
    {"ExplainStmt", STATEMENT_READ},
    {"VariableShowStmt", STATEMENT_READ},
    {"DeclareCursorStmt", STATEMENT_READ},
    {"FetchStmt", STATEMENT_READ},
    {"ClosePortalStmt", STATEMENT_READ},
    {"PrepareStmt", STATEMENT_READ},
    {"ExecuteStmt", STATEMENT_READ},
    {"DeallocateStmt", STATEMENT_READ},
    {"CopyStmt", 0},
    {"LockStmt", 0},
    {"InsertStmt", STATEMENT_WRITE},
    {"UpdateStmt", STATEMENT_WRITE},
    {"DeleteStmt", STATEMENT_WRITE},
    {"MergeStmt", STATEMENT_WRITE},
    {"TruncateStmt", STATEMENT_WRITE},
    {"CallStmt", STATEMENT_WRITE},
    {"CreateStmt", STATEMENT_DEFINE},
    {"CreateTableAsStmt", STATEMENT_DEFINE},
    {"CreateSchemaStmt", STATEMENT_DEFINE},
    {"CreateSeqStmt", STATEMENT_DEFINE},
    {"AlterSeqStmt", STATEMENT_DEFINE},
    {"IndexStmt", STATEMENT_DEFINE},
    {"ViewStmt", STATEMENT_DEFINE},
    {"AlterTableStmt", STATEMENT_DEFINE},
    {"AlterObjectSchemaStmt", STATEMENT_DEFINE},
    {"RenameStmt", STATEMENT_DEFINE},
    {"DropStmt", STATEMENT_DEFINE},
    {"CommentStmt", STATEMENT_DEFINE},
    {"CompositeTypeStmt", STATEMENT_DEFINE},
    {"CreateEnumStmt", STATEMENT_DEFINE},
    {"AlterEnumStmt", STATEMENT_DEFINE},
    {"CreateDomainStmt", STATEMENT_DEFINE},
    {"AlterDomainStmt", STATEMENT_DEFINE},
    {"CreateStatsStmt", STATEMENT_DEFINE},
    {"DefineStmt", STATEMENT_DEFINE}, /* of collations alone */
    {"AlterStatsStmt", STATEMENT_DEFINE},
    {"RefreshMatViewStmt", STATEMENT_DEFINE},
    {"ReindexStmt", STATEMENT_DEFINE},
    {"ClusterStmt", STATEMENT_DEFINE},
    {"VacuumStmt", STATEMENT_DEFINE},
    {"TransactionStmt", STATEMENT_TRANSACTION},
    {"ConstraintsSetStmt", STATEMENT_TRANSACTION},
    {"VariableSetStmt", STATEMENT_SESSION},
    {"DiscardStmt", STATEMENT_SESSION},
    {"ListenStmt", STATEMENT_LISTEN},
    {"UnlistenStmt", STATEMENT_LISTEN},
    {"NotifyStmt", STATEMENT_LISTEN},
};

/* What a statement of STATEMENT_DEFINE may alter, rename or drop. Others are code, rights, roles,
 * or ways to other servers. */
static const char *const objects[] = {
    "OBJECT_TABLE",         "OBJECT_INDEX",     "OBJECT_VIEW",          "OBJECT_MATVIEW",
    "OBJECT_SEQUENCE",      "OBJECT_SCHEMA",    "OBJECT_COLUMN",        "OBJECT_ATTRIBUTE",
    "OBJECT_TYPE",          "OBJECT_DOMAIN",    "OBJECT_DOMCONSTRAINT", "OBJECT_TABCONSTRAINT",
    "OBJECT_STATISTIC_EXT", "OBJECT_COLLATION",
};

struct text { /* a value, unescaped; longer ones are nobody's name */
    char p[TEXT_MAX];
    size_t n;
    bool wide;
};

/* An object or array that is open. */
struct frame {
    unsigned char key; /* under which it stands; KEY_NONE for a member of an array */
    bool array;
    bool due;  /* what it says is to be judged still, or it is refused */
    bool seen; /* an array: its first member is over */
    bool from; /* COPY: into a table */
    bool said; /* SET: its value is known */
};

struct walk {
    struct statement *s;
    const char *p, *end;
    size_t depth;
    struct frame *frames;
    struct text value;            /* the last */
    struct text function;         /* the name that is being read */
    struct text set_name, set_to; /* of the SET that is being read: there is one at a time */
    char set_kind[24];
    bool settings; /* it names the view pg_settings */
};

/* ---- what is found ---- */

static void refuse(struct walk *w, const char *why)
{
    if (w->s->refused == NULL)
        w->s->refused = why;
}

static struct slice text_of(const struct text *t)
{
    return t->wide ? SLICE("") : (struct slice){t->p, t->n};
}

static const struct frame *above(const struct walk *w, size_t i)
{
    static const struct frame none = {KEY_NONE, false, false, false, false, false};
    return i < w->depth ? &w->frames[w->depth - 1 - i] : &none;
}

static struct frame *above_mut(struct walk *w, size_t i)
{
    ASSERT(i < w->depth);
    return &w->frames[w->depth - 1 - i];
}

static void judge_role(struct walk *w, struct slice name, struct slice value)
{
    bool first = w->s->role[0] == 0;
    if (!slice_ieq_str(name, "role") || value.n == 0 || value.n > STATEMENT_ROLE_MAX ||
        (!first && !slice_eq_str(value, w->s->role))) {
        w->s->marks |= STATEMENT_ROLE;
        return;
    }
    memcpy(w->s->role, value.p, value.n);
    w->s->role[value.n] = 0;
}

static void judge_setting(struct walk *w, struct slice name, struct slice value, bool reset)
{
    switch (postgres_setting_kind(name)) {
    case POSTGRES_SETTING_FREE:
        break;
    case POSTGRES_SETTING_ROLE:
        judge_role(w, name, reset ? SLICE("") : value);
        break;
    case POSTGRES_SETTING_READ_ONLY:
        w->s->marks |= STATEMENT_READ_ONLY;
        break;
    case POSTGRES_SETTING_ENCODING:
        if (!reset && !postgres_encoding_ok(value))
            refuse(w, "another encoding than UTF-8");
        break;
    case POSTGRES_SETTING_READING:
        if (reset || !postgres_reading_ok(name, value))
            refuse(w, "a setting by which statements would be read otherwise");
        break;
    }
}

static void judge_set(struct walk *w, const struct frame *f)
{
    bool reset =
        strcmp(w->set_kind, "VAR_RESET") == 0 || strcmp(w->set_kind, "VAR_SET_DEFAULT") == 0;
    if (strcmp(w->set_kind, "VAR_RESET_ALL") == 0)
        return; /* back to what the connection was begun with, which is not the sandbox's to say */
    if (w->set_name.wide || w->set_name.n == 0)
        refuse(w, "a setting without a name");
    judge_setting(w, text_of(&w->set_name), f->said ? text_of(&w->set_to) : SLICE(""), reset);
}

static void note_shown(struct walk *w, struct slice name)
{
    if (statement_shows_activity(name))
        w->s->marks |= STATEMENT_ACTIVITY;
}

/* A name in call's place has been read whole. */
static void judge_function(struct walk *w)
{
    struct slice name = text_of(&w->function);
    if (w->function.wide)
        return; /* longer than any name that a server knows */
    note_shown(w, name);
    w->s->classes |= statement_function_classes(name);
    if (slice_eq_str(name, "set_config"))
        above_mut(w, 0)->due = true;
    else if (!statement_function_ok(name))
        refuse(w, "a function that runs what it is given or reaches beyond tables");
}

/* A function of one argument may be called as if it were a column: x.f is f(x). */
static void judge_column(struct walk *w)
{
    struct slice name = text_of(&w->value);
    note_shown(w, name);
    if (slice_eq_str(name, "nextval"))
        w->s->classes |= STATEMENT_WRITE;
    if (!statement_column_ok(name))
        refuse(w, "a column that has the name of a function that is refused");
}

static void judge_object(struct walk *w)
{
    for (size_t i = 0; i < ARRAY_LEN(objects); i++)
        if (slice_eq_str(text_of(&w->value), objects[i]))
            return;
    refuse(w, "a change of a kind of object that is not carried");
}

/* Who owns a table decides who may do what; triggers and rules are code, row security is rights. */
static void judge_alteration(struct walk *w)
{
    struct slice what = text_of(&w->value);
    if (slice_eq_str(what, "AT_ChangeOwner") || slice_find_slice(what, SLICE("Trig")) >= 0 ||
        slice_find_slice(what, SLICE("Rule")) >= 0 || slice_ends(what, SLICE("RowSecurity")) ||
        slice_ends(what, SLICE("GenericOptions")))
        refuse(w, "a change of a table's owner, rights or code");
}

/* ---- the walk ---- */

/* A text: `key` of the innermost object. */
static void on_text(struct walk *w, enum key key)
{
    const struct frame *in = above(w, 0), *up = above(w, 1), *list = above(w, 2);
    if (key == KEY_SVAL && in->key == KEY_STRING && list->array) {
        if (list->key == KEY_FUNCNAME)
            w->function = w->value;
        if ((list->key == KEY_FIELDS && list->seen) || list->key == KEY_INDIRECTION)
            judge_column(w);
    }
    /* FuncCall or SET, args, its first member, A_Const, sval */
    if (key == KEY_SVAL && in->key == KEY_SVAL && up->key == KEY_CONST && !list->array &&
        above(w, 3)->key == KEY_ARGS && above(w, 3)->array && !above(w, 3)->seen) {
        struct frame *call = above_mut(w, 4);
        if (call->key == KEY_FUNC && call->due && !w->value.wide) {
            call->due = false;
            judge_setting(w, text_of(&w->value), SLICE(""), false);
        }
        if (call->key == KEY_SET) {
            w->set_to = w->value;
            call->said = true;
        }
    }
    if ((key == KEY_RELNAME || (key == KEY_SVAL && in->key == KEY_STRING)) &&
        slice_eq_str(text_of(&w->value), "pg_settings"))
        w->settings = true;
    if (key == KEY_RELNAME)
        note_shown(w, text_of(&w->value));
    if (key == KEY_OBJECT_KIND || (key == KEY_OBJTYPE && in->key == KEY_ALTER_TABLE))
        judge_object(w);
    if (key == KEY_SUBTYPE && in->key == KEY_ALTER_COMMAND)
        judge_alteration(w);
    if (in->key == KEY_SET && key == KEY_NAME)
        w->set_name = w->value;
    if (in->key == KEY_SET && key == KEY_KIND) {
        struct slice kind = text_of(&w->value);
        size_t n = kind.n < sizeof w->set_kind ? kind.n : sizeof w->set_kind - 1;
        memcpy(w->set_kind, kind.p, n);
        w->set_kind[n] = 0;
    }
    if (in->key == KEY_DEFELEM && key == KEY_DEFNAME &&
        slice_ieq_str(text_of(&w->value), "transaction_read_only"))
        above_mut(w, 0)->due = true;
    if (in->key == KEY_COPY && key == KEY_FILENAME)
        refuse(w, "COPY with a file or a program of the server's");
    if (in->key == KEY_DISCARD && key == KEY_TARGET &&
        slice_eq_str(text_of(&w->value), "DISCARD_ALL"))
        w->s->marks |= STATEMENT_ROLE;
    if (in->key == KEY_DEFINE && key == KEY_KIND &&
        slice_eq_str(text_of(&w->value), "OBJECT_COLLATION"))
        above_mut(w, 0)->due = false; /* which orders text, and runs nothing */
    if (in->key == KEY_TRANSACTION && key == KEY_KIND &&
        (slice_eq_str(text_of(&w->value), "TRANS_STMT_PREPARE") ||
         slice_ends(text_of(&w->value), SLICE("_PREPARED"))))
        w->s->classes |= STATEMENT_WRITE;
}

/* A number or a word. */
static void on_word(struct walk *w, enum key key, struct slice word)
{
    const struct frame *in = above(w, 0);
    if (in->key == KEY_COPY && key == KEY_IS_PROGRAM)
        refuse(w, "COPY with a file or a program of the server's");
    if (in->key == KEY_COPY && key == KEY_IS_FROM)
        above_mut(w, 0)->from = true;
    if (in->key == KEY_LOCK && key == KEY_MODE && slice_eq_str(word, "1"))
        above_mut(w, 0)->due = false; /* ACCESS SHARE, which reading takes itself */
    /* DefElem, arg, A_Const, ival: READ ONLY */
    if (key == KEY_IVAL && in->key == KEY_IVAL && above(w, 1)->key == KEY_CONST &&
        above(w, 2)->key == KEY_ARG && above(w, 3)->key == KEY_DEFELEM && slice_eq_str(word, "1"))
        above_mut(w, 3)->due = false;
}

static void on_leave(struct walk *w, const struct frame *f)
{
    switch (f->key) {
    case KEY_FUNCNAME:
        if (f->array)
            judge_function(w);
        break;
    case KEY_FUNC:
        if (f->due)
            refuse(w, "set_config() of a setting that is not said plainly");
        break;
    case KEY_SET:
        judge_set(w, f);
        break;
    case KEY_DEFELEM:
        if (f->due)
            w->s->marks |= STATEMENT_READ_ONLY;
        break;
    case KEY_COPY:
        w->s->classes |= f->from ? STATEMENT_WRITE : STATEMENT_READ;
        break;
    case KEY_DEFINE:
        if (f->due)
            refuse(w, "a kind of object that is not carried");
        break;
    case KEY_LOCK:
        w->s->classes |= f->due ? STATEMENT_WRITE : STATEMENT_READ;
        break;
    default:
        break;
    }
}

/* Names of statements are the keys that begin with a capital and end in Stmt. */
static void on_kind(struct walk *w, struct slice word)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (slice_eq_str(word, kinds[i].word)) {
            w->s->classes |= kinds[i].classes;
            return;
        }
    refuse(w, "a kind of statement that is not carried");
}

static int enter(struct walk *w, enum key key, bool array)
{
    if (w->depth == DEPTH_MAX)
        return -1;
    w->frames[w->depth++] = (struct frame){.key = (unsigned char)key, .array = array};
    struct frame *f = above_mut(w, 0);
    f->due = (key == KEY_LOCK || key == KEY_DEFINE) && !array;
    if (key == KEY_SET && !array) {
        w->set_kind[0] = 0;
        w->set_name = w->set_to = (struct text){.n = 0};
    }
    if (key == KEY_FUNCNAME && array)
        w->function = (struct text){.n = 0};
    if (key == KEY_INTO && !array)
        w->s->classes |= STATEMENT_DEFINE;
    if (key == KEY_LOCKING && array)
        w->s->classes |= STATEMENT_WRITE;
    return 0;
}

/* ---- the tree's text ---- */

static int hex(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        char c = ascii_lower(p[i]);
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (d < 0)
            return -1;
        v = v * 16 + d;
    }
    return v;
}

static void keep(struct text *t, char c)
{
    if (t->n < sizeof t->p)
        t->p[t->n++] = c;
    else
        t->wide = true;
}

/* What follows a backslash; w->p stands on it. */
static int read_escape(struct walk *w, struct text *to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *at = memchr(from, *w->p, sizeof from - 1);
    if (at) {
        keep(to, into[at - from]);
        w->p++;
        return 0;
    }
    int v = *w->p == 'u' && w->end - w->p > 4 ? hex(w->p + 1) : -1;
    if (v < 0)
        return -1;
    keep(to, v < 0x80 ? (char)v : '?'); /* no name that we know has such a letter */
    w->p += 5;
    return 0;
}

static int read_string(struct walk *w, struct text *to)
{
    *to = (struct text){.n = 0};
    w->p++;
    while (w->p < w->end && *w->p != '"') {
        char c = *w->p++;
        if (c != '\\')
            keep(to, c);
        else if (w->p == w->end || read_escape(w, to) < 0)
            return -1;
    }
    if (w->p == w->end)
        return -1;
    w->p++;
    return 0;
}

static enum key key_of(const struct text *t)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (slice_eq_str(text_of(t), words[i].word))
            return words[i].key;
    return KEY_NONE;
}

static int read_key(struct walk *w, enum key *ret)
{
    struct text t;
    if (read_string(w, &t) < 0 || w->p == w->end || *w->p != ':')
        return -1;
    w->p++;
    struct slice word = text_of(&t);
    if (word.n > 4 && word.p[0] >= 'A' && word.p[0] <= 'Z' && slice_ends(word, SLICE("Stmt")))
        on_kind(w, word);
    *ret = key_of(&t);
    return 0;
}

static int read_value(struct walk *w, enum key key)
{
    if (w->p == w->end)
        return -1;
    if (*w->p == '{' || *w->p == '[')
        return enter(w, key, *w->p++ == '[');
    if (*w->p == '"') {
        if (read_string(w, &w->value) < 0)
            return -1;
        on_text(w, key);
    } else {
        const char *from = w->p;
        while (w->p < w->end && *w->p != ',' && *w->p != '}' && *w->p != ']')
            w->p++;
        on_word(w, key, (struct slice){from, (size_t)(w->p - from)});
    }
    return 0;
}

/* One step: a member, a comma, or an end. */
static int step(struct walk *w)
{
    struct frame *f = above_mut(w, 0);
    enum key key = KEY_NONE;
    if (*w->p == (f->array ? ']' : '}')) {
        const struct frame left = *f;
        w->p++;
        w->depth--;
        on_leave(w, &left);
        return 0;
    }
    if (*w->p == ',') {
        w->p++;
        f->seen = true;
        return 0;
    }
    if (!f->array && (*w->p != '"' || read_key(w, &key) < 0))
        return -1;
    return read_value(w, key);
}

static int walk_tree(struct walk *w)
{
    if (read_value(w, KEY_NONE) < 0 || w->depth != 1)
        return -1;
    while (w->depth > 0)
        if (w->p == w->end || step(w) < 0)
            return -1;
    return w->p == w->end ? 0 : -1;
}

/* ---- the whole ---- */

/* What pg_dump says so: its setting is read from a table, its value is none that any other setting
 * takes. */
static const char dump_text[] =
    "SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings "
    "WHERE name = 'restrict_nonsystem_relation_kind'";

static void read_tree(const char *tree, struct statement *ret)
{
    struct walk w = {.s = ret, .p = tree, .end = tree + strlen(tree)};
    w.frames = calloc(DEPTH_MAX, sizeof *w.frames);
    if (w.frames == NULL || walk_tree(&w) < 0)
        refuse(&w, "a statement that is too deep to be judged");
    /* A rule of the server's makes set_config() of an UPDATE of that view, or of one over it. */
    if (w.settings && ret->classes & (STATEMENT_WRITE | STATEMENT_DEFINE))
        refuse(&w, "a statement that writes and names pg_settings");
    free(w.frames);
}

struct reading {
    char *text;
    struct statement *ret;
};

/* The library recurses as deep as a statement does, and says where it stops only of some ways. */
static void read_parsed(void *arg)
{
    const char *text = ((struct reading *)arg)->text;
    struct statement *ret = ((struct reading *)arg)->ret;
    PgQueryParseResult parsed = pg_query_parse(text);
    if (parsed.error || parsed.parse_tree == NULL)
        ret->refused = "a statement that cannot be read";
    else
        read_tree(parsed.parse_tree, ret);
    pg_query_free_parse_result(parsed);
    if (strcmp(text, dump_text) == 0)
        ret->refused = NULL;
    if (ret->refused && ret->classes == 0)
        return;
    PgQueryFingerprintResult print = pg_query_fingerprint(text);
    if (print.error == NULL && print.fingerprint_str &&
        strlen(print.fingerprint_str) == STATEMENT_FINGERPRINT)
        memcpy(ret->fingerprint, print.fingerprint_str, sizeof ret->fingerprint);
    pg_query_free_fingerprint_result(print);
}

void statement_read(struct slice text, struct statement *ret)
{
    memset(ret, 0, sizeof *ret);
    if (text.n > STATEMENT_MAX) {
        ret->refused = "a statement that is too long to be judged";
        return;
    }
    if (!websocket_is_utf8(text)) {
        ret->refused = "a statement that is not UTF-8";
        return;
    }
    struct reading r = {.text = slice_dup(text), .ret = ret};
    if (r.text && text.n <= SHALLOW)
        read_parsed(&r);
    else if (r.text == NULL || parser_stack_run(read_parsed, &r) < 0)
        ret->refused = "a statement that cannot be read";
    free(r.text);
}

const char *statement_refusal(const struct statement *s, const struct statement_bounds *b)
{
    if (s->refused)
        return s->refused;
    bool another = s->role[0] && (b->own_role == NULL || strcmp(s->role, b->own_role) != 0);
    if (b->role && (another || s->marks & STATEMENT_ROLE))
        return "a change of the role, which is the rule's";
    if (b->read_only && s->marks & STATEMENT_READ_ONLY)
        return "a change of what may be written, which is nothing";
    if (b->read_only && s->classes & (STATEMENT_WRITE | STATEMENT_DEFINE))
        return "a statement that writes";
    if (!b->activity && s->marks & STATEMENT_ACTIVITY)
        return "what other sessions say, which 'activity' would allow";
    if (s->classes & ~b->classes)
        return "a kind of statement that the rule does not have";
    return NULL;
}
