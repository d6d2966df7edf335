"""boto3 assumes a role at argv[1] and asks argv[2] with its keys. One JSON line."""
import json
import os
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

once = Config(retries={"max_attempts": 1})
sts = boto3.client("sts", region_name="us-east-1", endpoint_url=sys.argv[1], config=once)


def item(key_id, secret, token):
    client = boto3.client("dynamodb", region_name="eu-west-3", endpoint_url=sys.argv[2], config=once,
                          aws_access_key_id=key_id, aws_secret_access_key=secret, aws_session_token=token)
    try:
        return client.get_item(TableName="t", Key={"k": {"S": "ü"}}).get("Item")
    except ClientError as e:
        return str(e.response["ResponseMetadata"]["HTTPStatusCode"])


def role():
    got = sts.assume_role(RoleArn="arn:aws:iam::123456789012:role/agent", RoleSessionName="agent")["Credentials"]
    return [got[k] for k in ("AccessKeyId", "SecretAccessKey", "SessionToken")]


got = {"before": item(*[os.environ["ASSUMED"]] * 3)}
got["credentials"] = role()
got["item"] = item(*got["credentials"])
got["again"] = role()
got["item again"] = item(*got["again"])
print(json.dumps(got))
