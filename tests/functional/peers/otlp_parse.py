"""What an OTLP receiver was sent, read with the project's own messages (opentelemetry-proto), which
refuse what the protocol does not know. stdin: {"path", "body"} a line; stdout: an item a line."""
import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def bytes_of_ids(x):
    """OTLP writes these in hex, where JSON of protobuf has base64."""
    if isinstance(x, list):
        return [bytes_of_ids(y) for y in x]
    if not isinstance(x, dict):
        return x
    return {k: base64.b64encode(bytes.fromhex(v)).decode()
            if k in ("traceId", "spanId", "parentSpanId") else bytes_of_ids(v) for k, v in x.items()}


def plain(value):
    which = value.WhichOneof("value")
    return getattr(value, which) if which else None


def attributes(x):
    return {a.key: plain(a.value) for a in x.attributes}


def read(path, body):
    logs = path.endswith("/v1/logs")
    request = ExportLogsServiceRequest() if logs else ExportTraceServiceRequest()
    json_format.ParseDict(bytes_of_ids(json.loads(body)), request)
    for resource in request.resource_logs if logs else request.resource_spans:
        for scope in resource.scope_logs if logs else resource.scope_spans:
            for x in scope.log_records if logs else scope.spans:
                item = {"resource": attributes(resource.resource), "scope": scope.scope.name,
                        "trace": x.trace_id.hex(), "span": x.span_id.hex(),
                        "attributes": attributes(x)}
                if logs:
                    item.update(what="log", time=x.time_unix_nano, severity=x.severity_number,
                                event=x.event_name, body=plain(x.body))
                else:
                    item.update(what="span", name=x.name, parent=x.parent_span_id.hex(), kind=x.kind,
                                begin=x.start_time_unix_nano, end=x.end_time_unix_nano,
                                status=x.status.code)
                print(json.dumps(item))


for line in sys.stdin:
    it = json.loads(line)
    read(it["path"], it["body"])
