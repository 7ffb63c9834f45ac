"""A worker in Python: takes jobs of a queue with credit, and settles each with its token.

    pip install grpcio grpcio-tools
    python -m grpc_tools.protoc -I ../../proto --python_out=. --grpc_python_out=. crore/v1/job.proto crore/v1/crore.proto
    python worker.py 127.0.0.1:50051 mails 10
"""

import json
import queue
import sys

import grpc
from crore.v1 import crore_pb2, crore_pb2_grpc

BEAT_SECONDS = 3


def requests(outbox: queue.Queue):
    """What goes to the server; a beat when there is nothing else to say."""
    while True:
        try:
            request = outbox.get(timeout=BEAT_SECONDS)
        except queue.Empty:
            request = crore_pb2.WorkRequest(beat=True)
        if request is None:
            return
        yield request


def handle(job) -> crore_pb2.WorkRequest.Settle:
    settle = crore_pb2.WorkRequest.Settle(token=job.token)
    try:
        payload = json.loads(job.payload.json)
        settle.done.result.json = json.dumps({"sent": payload["to"]})
    except Exception as error:  # whatever it is, the job is tried again
        settle.fail.error = repr(error)
    return settle


def main(address: str, name: str, stop_after: int) -> None:
    outbox: queue.Queue = queue.Queue()
    open_ = crore_pb2.WorkRequest.Open(queues=[name], name="python")
    outbox.put(crore_pb2.WorkRequest(open=open_, credit=10))
    left = stop_after
    with grpc.insecure_channel(address) as channel:
        stub = crore_pb2_grpc.CroreStub(channel)
        for response in stub.Work(requests(outbox)):
            for job in response.jobs:
                outbox.put(crore_pb2.WorkRequest(settle=[handle(job)], credit=1))
            left -= sum(1 for settled in response.settled if settled.applied)
            if left <= 0:
                outbox.put(None)
    print(f"{stop_after} jobs done")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
