/* Which functions of the server a statement may call, and which names show what others say. Of
 * those that begin with pg_ only what looks and does not touch; of the others all but those that
 * are known to run SQL, to write outside of tables or to reach out. */
#include "statement.h"

#include <string.h>

/* "x*" begins so, "*x" ends so. */
static bool matches(struct slice name, const char *pattern)
{
    size_t n = strlen(pattern);
    if (pattern[0] == '*')
        return slice_ends(name, slice_str(pattern + 1));
    if (pattern[n - 1] == '*')
        return slice_starts(name, (struct slice){pattern, n - 1});
    return slice_eq_str(name, pattern);
}

static bool listed(struct slice name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (matches(name, list[i]))
            return true;
    return false;
}

static const char *const harmless[] = {
    "pg_get_*",
    "pg_stat_get_*",
    "*_is_visible",
    "*_size",
    "pg_size_pretty",
    "pg_size_bytes",
    "pg_typeof",
    "pg_backend_pid",
    "pg_sleep*",
    "pg_advisory_*",
    "pg_try_advisory_*",
    "pg_encoding_to_char",
    "pg_char_to_encoding",
    "pg_encoding_max_length",
    "pg_client_encoding",
    "pg_postmaster_start_time",
    "pg_conf_load_time",
    "pg_is_in_recovery",
    "pg_is_other_temp_schema",
    "pg_my_temp_schema",
    "pg_has_role",
    "pg_collation_for",
    "pg_collation_actual_version",
    "pg_database_collation_actual_version",
    "pg_describe_object",
    "pg_identify_object*",
    "pg_relation_filenode",
    "pg_relation_filepath",
    "pg_filenode_relation",
    "pg_relation_is_updatable",
    "pg_relation_is_publishable",
    "pg_column_is_updatable",
    "pg_column_compression",
    "pg_column_toast_chunk_id",
    "pg_index_column_has_property",
    "pg_index_has_property",
    "pg_indexam_has_property",
    "pg_options_to_table",
    "pg_tablespace_databases",
    "pg_tablespace_location",
    "pg_timezone_names",
    "pg_timezone_abbrevs",
    "pg_show_all_settings",
    "pg_settings_get_flags",
    "pg_blocking_pids",
    "pg_safe_snapshot_blocking_pids",
    "pg_current_xact_id*",
    "pg_current_snapshot",
    "pg_snapshot_*",
    "pg_visible_in_snapshot",
    "pg_xact_status",
    "pg_xact_commit_timestamp*",
    "pg_last_committed_xact",
    "pg_current_wal_*",
    "pg_last_wal_*",
    "pg_last_xact_replay_timestamp",
    "pg_wal_lsn_diff",
    "pg_walfile_name*",
    "pg_split_walfile_name",
    "pg_notify",
    "pg_listening_channels",
    "pg_notification_queue_usage",
    "pg_partition_*",
    "pg_sequence_last_value",
    "pg_sequence_parameters",
    "pg_lock_status",
    "pg_cursor",
    "pg_prepared_statement",
    "pg_prepared_xact",
    "pg_available_extension*",
    "pg_extension_update_paths",
    "pg_event_trigger_*",
    "pg_input_*",
    "pg_basetype",
    "pg_jit_available",
    "pg_trigger_depth",
    "pg_export_snapshot",
    "pg_node_tree*",
    "pg_lsn*",
    "pg_ndistinct*",
    "pg_mcv_list*",
};

static const char *const harmful[] = {
    "query_to_xml*", /* these run SQL that is a text */
    "cursor_to_xml*",
    "set_config",
    "ts_stat",
    "ts_rewrite",
    "crosstab*",
    "connectby",
    "xpath_table",
    "dblink*",
    "schedule",
    "schedule_in_database",
    "unschedule",
    "add_job",
    "alter_job",
    "run_job",
    "delete_job",
    "pgr_*",
    "cypher",
    "hypopg_*",
    "addgeometrycolumn",
    "run_command_on_*",
    "plpgsql_call_handler",
    "plpgsql_inline_handler",
    "fmgr_*",
    "lo_*", /* these write what is no table's */
    "loread",
    "lowrite",
    "binary_upgrade_*",
    "http*", /* these reach out of the server */
    "query_export_to_s3",
    "table_import_from_s3",
    "invoke",
    "postgres_fdw_*",
    "currtid*",
    "brin_summarize_*",
    "brin_desummarize_*",
    "gin_clean_pending_list",
};

bool statement_function_ok(struct slice name)
{
    if (slice_starts(name, SLICE("pg_")))
        return listed(name, harmless, ARRAY_LEN(harmless));
    return !listed(name, harmful, ARRAY_LEN(harmful));
}

/* Those that are refused and need one argument at most, and what later servers may have of their
 * families. Others of these beginnings are columns: http_status, schedule, pg_rating, lo_revenue.
 */
static const char *const of_one[] = {
    "pg_read_*",
    "pg_ls_*",
    "pg_background_*",
    "pg_truncate_*",
    "pg_terminate_*",
    "pg_cancel_*",
    "pg_drop_*",
    "pg_file_length",
    "pg_file_sync",
    "pg_file_unlink",
    "pg_stat_file",
    "pg_stat_reset*",
    "pg_stat_statements_reset",
    "pg_current_logfile",
    "pg_create_*",
    "pg_replication_origin_create",
    "pg_replication_origin_drop",
    "pg_replication_origin_oid",
    "pg_replication_origin_session_*",
    "pg_logical_*",
    "pg_logdir_*",
    "pg_logfile_*",
    "pg_log_*",
    "pg_import_system_collations",
    "pg_promote",
    "pg_backup_*",
    "pg_start_backup",
    "pg_stop_backup",
    "pg_rotate_*",
    "pg_wal_replay_*",
    "pg_copy_*",
    "pg_restore_*",
    "pg_clear_*",
    "pg_set_*",
    "pg_sync_*",
    "pg_buffercache_evict*",
    "pg_prewarm",
    "pg_ddl_command_*",
    "pg_dependencies_*",
    "set_config",
    "ts_stat",
    "crosstab*",
    "dblink*",
    "unschedule",
    "alter_job",
    "delete_job",
    "pgr_*",
    "cypher",
    "hypopg_*",
    "run_command_on_*",
    "plpgsql_call_handler",
    "plpgsql_inline_handler",
    "fmgr_*",
    "lo_close", /* all others of its family need more than one */
    "lo_creat",
    "lo_create",
    "lo_get",
    "lo_import",
    "lo_tell",
    "lo_tell64",
    "lo_unlink",
    "binary_upgrade_*",
    "http",
    "http_get",
    "http_head",
    "http_post",
    "http_delete",
    "postgres_fdw_*",
    "brin_summarize_*",
    "gin_clean_pending_list",
};

bool statement_column_ok(struct slice name)
{
    return !listed(name, of_one, ARRAY_LEN(of_one));
}

/* The server's own, those of extensions that keep statements, and functions that read whatever
 * table a text names. */
static const char *const activity[] = {
    "pg_stat_activity",    "pg_stat_get_activity", "pg_stat_get_backend_activity*",
    "pg_stat_statements*", "pg_stat_monitor*",     "pg_store_plans*",
    "table_to_xml*",       "schema_to_xml*",       "database_to_xml*",
    "pg_get_wal_*",
};

bool statement_shows_activity(struct slice name)
{
    return listed(name, activity, ARRAY_LEN(activity));
}

unsigned statement_function_classes(struct slice name)
{
    if (slice_eq_str(name, "setval") || slice_eq_str(name, "nextval"))
        return STATEMENT_WRITE;
    return slice_eq_str(name, "pg_notify") ? STATEMENT_LISTEN : 0;
}
