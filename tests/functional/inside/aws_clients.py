"""boto3 inside a sandbox with placeholder keys: argv[1] is the S3 endpoint, argv[2] another
service's. One JSON line of what came of each step."""
import gzip
import json
import sys
import tempfile
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, other = sys.argv[1:3]
got = {}
BIG = bytes(range(256)) * 4096      # 1 MiB


def step(name, fn):
    try:
        got[name] = fn()
    except ClientError as e:
        got[name] = e.response["Error"].get("Code")
    except Exception as e:      # noqa: B902  every failure is the test's to see
        got[name] = "%s: %s" % (type(e).__name__, e)


def s3_client(**kw):
    return boto3.client("s3", region_name="us-east-1", endpoint_url=endpoint,
                        config=Config(signature_version="s3v4", s3={"addressing_style": "path", **kw},
                                      retries={"max_attempts": 1}))


def fetch(url, data=None):
    with urllib.request.urlopen(urllib.request.Request(
            url, data=data, method="PUT" if data else "GET")) as r:
        return r.read().decode()


def in_parts(key):
    """As download_file takes every file above 8 MB: parts at once, each written where it belongs."""
    seen, to = [], tempfile.NamedTemporaryFile()
    s3.meta.events.register("needs-retry.s3.GetObject", lambda response, **kw: seen.append(
        response and response[0].status_code))
    s3.download_file("bucket-one", key, to.name, Config=TransferConfig(multipart_threshold=1, multipart_chunksize=1 << 18))
    with open(to.name, "rb") as f:
        return [f.read() == BIG, seen.count(206)]


def packed(key):
    """An object that lies there as gzip comes as it lies there."""
    s3.put_object(Bucket="bucket-one", Key=key, Body=gzip.compress(BIG), ContentEncoding="gzip")
    back = s3.get_object(Bucket="bucket-one", Key=key)
    return [gzip.decompress(back["Body"].read()) == BIG, back["ContentEncoding"]]


s3 = s3_client()
step("make", lambda: s3.create_bucket(
    Bucket="bucket-one") and True)
step("put", lambda: s3.put_object(Bucket="bucket-one", Key="a/b c+d=e&f ~'(x)é", Body=b"hello",
                                  Metadata={"one": "1  2"}, ContentType="text/plain") and True)
step("get", lambda: s3.get_object(Bucket="bucket-one", Key="a/b c+d=e&f ~'(x)é")["Body"].read().decode())
step("meta", lambda: s3.head_object(Bucket="bucket-one", Key="a/b c+d=e&f ~'(x)é")["Metadata"])
step("list", lambda: [o["Key"] for o in s3.list_objects_v2(
    Bucket="bucket-one", Prefix="a/b c", Delimiter="|").get("Contents", [])])
step("unsigned", lambda: s3_client(payload_signing_enabled=False).put_object(
    Bucket="bucket-one", Key="big", Body=BIG) and True)
step("signed", lambda: s3_client(payload_signing_enabled=True).put_object(
    Bucket="bucket-one", Key="big2", Body=BIG) and True)
step("big", lambda: s3.get_object(Bucket="bucket-one", Key="big2")["Body"].read() == BIG)
step("in parts", lambda: in_parts("big2"))
step("packed", lambda: packed("packed"))
step("presigned", lambda: fetch(s3.generate_presigned_url(
    "get_object", Params={"Bucket": "bucket-one", "Key": "a/b c+d=e&f ~'(x)é",
                          "ResponseContentType": "text/x-y"})))
step("presigned put", lambda: fetch(s3.generate_presigned_url(
    "put_object", Params={"Bucket": "bucket-one", "Key": "pre"}), b"presigned"))
step("presigned got", lambda: s3.get_object(Bucket="bucket-one", Key="pre")["Body"].read().decode())
step("delete", lambda: s3.delete_objects(Bucket="bucket-one", Delete={"Objects": [{"Key": "pre"}]}) and True)
step("foreign", lambda: boto3.client(
    "s3", region_name="us-east-1", endpoint_url=endpoint, aws_access_key_id="AKIAATTACKER",
    aws_secret_access_key="x", config=Config(s3={"addressing_style": "path"},
                                             retries={"max_attempts": 1})).list_buckets() and True)
if other != "-":
    dynamo = boto3.client("dynamodb", region_name="us-east-2", endpoint_url=other,
                          config=Config(retries={"max_attempts": 1}))
    step("dynamodb", lambda: dynamo.get_item(TableName="t", Key={"k": {"S": "ü"}})["Item"])
    wrong = boto3.client("dynamodb", region_name="us-west-1", endpoint_url=other,
                         config=Config(retries={"max_attempts": 1}))
    step("region", lambda: wrong.list_tables() and True)
print(json.dumps(got))
