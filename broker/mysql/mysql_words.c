/* Lists of words. */
#include "mysql_words.h"

bool mysql_is_one(struct slice s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_ieq_str(s, words[i]))
            return true;
    return false;
}

/* The next letter, as servers fold those of names: four beyond ASCII are one of ASCII's in the
 * other case (U+0130, U+0131, U+017F and U+212A). */
static char next_letter(struct slice *s)
{
    static const struct {
        struct slice written;
        char letter;
    } folded[] = {{SLICE_INIT("\xc4\xb0"), 'i'},
                  {SLICE_INIT("\xc4\xb1"), 'i'},
                  {SLICE_INIT("\xc5\xbf"), 's'},
                  {SLICE_INIT("\xe2\x84\xaa"), 'k'}};
    size_t n = 1;
    char c = ascii_lower(s->p[0]);
    for (size_t i = 0; i < ARRAY_LEN(folded); i++)
        if (slice_starts(*s, folded[i].written)) {
            n = folded[i].written.n;
            c = folded[i].letter;
        }
    *s = (struct slice){s->p + n, s->n - n};
    return c;
}

static bool is_name(struct slice s, const char *name)
{
    while (s.n > 0 && *name)
        if (next_letter(&s) != *name++)
            return false;
    return s.n == 0 && *name == 0;
}

static bool names_one(struct slice s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_name(s, names[i]))
            return true;
    return false;
}

bool mysql_database_own(struct slice name)
{
    return is_name(name, "mysql");
}

bool mysql_function_refused(struct slice name)
{
    static const char *const all[] = {"load_file",         "sys_exec",
                                      "sys_eval",          "sys_get",
                                      "sys_set",           "sys_bineval",
                                      "master_pos_wait",   "master_gtid_wait",
                                      "source_pos_wait",   "http_get",
                                      "http_post",         "lib_mysqludf_sys_info",
                                      "spider_direct_sql", "spider_bg_direct_sql",
                                      "spider_copy_tables"};
    return names_one(name, all, ARRAY_LEN(all));
}

bool mysql_shows_activity(struct slice name)
{
    static const char *const all[] = {"processlist", "innodb_trx", "query_cache_info",
                                      "metadata_lock_info", "innodb_locks"};
    return names_one(name, all, ARRAY_LEN(all));
}

bool mysql_database_shows_activity(struct slice name)
{
    static const char *const all[] = {"performance_schema", "sys"};
    return names_one(name, all, ARRAY_LEN(all));
}

bool mysql_function_writes(struct slice name)
{
    static const char *const all[] = {
        "get_lock", "release_lock", "release_all_locks",     "service_get_write_locks",
        "nextval",  "setval",       "service_get_read_locks"};
    return names_one(name, all, ARRAY_LEN(all));
}

/* What the server tells of a session's state. */
static bool is_tracking(struct slice name)
{
    static const char word[] = "session_track_";
    return name.n >= sizeof word && slice_ieq_str((struct slice){name.p, sizeof word - 1}, word);
}

bool mysql_setting_free(struct slice name)
{
    static const char *const all[] = {"autocommit",
                                      "auto_increment_increment",
                                      "auto_increment_offset",
                                      "big_tables",
                                      "character_set_results",
                                      "cte_max_recursion_depth",
                                      "default_week_format",
                                      "div_precision_increment",
                                      "eq_range_index_dive_limit",
                                      "explicit_defaults_for_timestamp",
                                      "foreign_key_checks",
                                      "group_concat_max_len",
                                      "identity",
                                      "information_schema_stats_expiry",
                                      "innodb_lock_wait_timeout",
                                      "innodb_strict_mode",
                                      "insert_id",
                                      "interactive_timeout",
                                      "join_buffer_size",
                                      "last_insert_id",
                                      "lc_messages",
                                      "lc_time_names",
                                      "lock_wait_timeout",
                                      "max_execution_time",
                                      "max_heap_table_size",
                                      "max_join_size",
                                      "max_recursive_iterations",
                                      "max_sort_length",
                                      "max_statement_time",
                                      "net_buffer_length",
                                      "net_read_timeout",
                                      "net_retry_count",
                                      "net_write_timeout",
                                      "optimizer_search_depth",
                                      "optimizer_switch",
                                      "profiling",
                                      "query_cache_type",
                                      "rand_seed1",
                                      "rand_seed2",
                                      "sort_buffer_size",
                                      "sql_auto_is_null",
                                      "sql_big_selects",
                                      "sql_buffer_result",
                                      "sql_notes",
                                      "sql_quote_show_create",
                                      "sql_safe_updates",
                                      "sql_select_limit",
                                      "sql_warnings",
                                      "time_zone",
                                      "timestamp",
                                      "tmp_table_size",
                                      "transaction_isolation",
                                      "tx_isolation",
                                      "unique_checks",
                                      "updatable_views_with_limit",
                                      "wait_timeout"};
    return mysql_is_one(name, all, ARRAY_LEN(all)) || is_tracking(name);
}

bool mysql_setting_charset(struct slice name)
{
    static const char *const all[] = {"character_set_client", "character_set_connection",
                                      "collation_connection"};
    return mysql_is_one(name, all, ARRAY_LEN(all));
}

bool mysql_modes_ok(struct slice list)
{
    static const char *const all[] = {"",
                                      "allow_invalid_dates",
                                      "error_for_division_by_zero",
                                      "high_not_precedence",
                                      "ignore_space",
                                      "no_auto_create_user",
                                      "no_auto_value_on_zero",
                                      "no_dir_in_create",
                                      "no_engine_substitution",
                                      "no_unsigned_subtraction",
                                      "no_zero_date",
                                      "no_zero_in_date",
                                      "only_full_group_by",
                                      "pad_char_to_full_length",
                                      "pipes_as_concat",
                                      "real_as_float",
                                      "simultaneous_assignment",
                                      "strict_all_tables",
                                      "strict_trans_tables",
                                      "time_round_fractional",
                                      "time_truncate_fractional",
                                      "traditional"};
    for (;;) {
        ssize_t comma = slice_find(list, ',');
        struct slice one = {list.p, comma < 0 ? list.n : (size_t)comma};
        if (!mysql_is_one(one, all, ARRAY_LEN(all)))
            return false;
        if (comma < 0)
            return true;
        list = (struct slice){list.p + comma + 1, list.n - (size_t)comma - 1};
    }
}

bool mysql_engine_ok(struct slice name)
{
    static const char *const all[] = {"innodb",  "myisam", "aria",   "memory",
                                      "rocksdb", "heap",   "archive"};
    return mysql_is_one(name, all, ARRAY_LEN(all));
}

bool mysql_comment_word_ok(struct slice word)
{
    static const char *const all[] = {"sql_no_cache", "with", "consistent", "snapshot", "local"};
    return mysql_is_one(word, all, ARRAY_LEN(all));
}
