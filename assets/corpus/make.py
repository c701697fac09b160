"""Makes the corpus of payloads with other implementations than ours. usage: make.py FOLDER JAVA_LINES"""
import base64, datetime, decimal, gzip, io, json, math, os, struct, subprocess, sys, tempfile, uuid, zlib

import brotli, cbor2, fastavro, lz4.frame, msgpack, snappy, zstandard
from fastavro.schema import fingerprint

FOLDER, JAVA = sys.argv[1:3]
SCHEMAS, CASES = [], []
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)


def squeeze(data, level=6):
    """gzip without the time of day, so that the corpus comes out the same each time."""
    return gzip.compress(data, level, mtime=0)


def b64(data):
    return base64.b64encode(data).decode()


class Raw:
    """JSON text that is written as it stands."""
    def __init__(self, text): self.text = text


def dump(value):
    """Values of Python as the command line writes them (design §11)."""
    if isinstance(value, Raw): return value.text
    if value is None or isinstance(value, bool) or isinstance(value, (int, str)): return json.dumps(value)
    if isinstance(value, float):
        return json.dumps(value) if math.isfinite(value) else json.dumps({"float": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"})
    if isinstance(value, (bytes, bytearray)): return json.dumps({"bytes": b64(bytes(value))})
    if isinstance(value, decimal.Decimal): return json.dumps({"decimal": format(value, "f")})
    if isinstance(value, (list, tuple)): return "[" + ",".join(map(dump, value)) + "]"
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return "{" + ",".join(json.dumps(key) + ":" + dump(item) for key, item in value.items()) + "}"
        return '{"pairs":[' + ",".join("[" + dump(key) + "," + dump(item) + "]" for key, item in value.items()) + "]}"
    raise TypeError(type(value))


def time(text, raw): return {"time": text, "raw": raw}
def tag(mark, value): return {"tag": mark, "value": value}


def case(name, made_by, body, layers, value, **more):
    """One payload: `layers` is what must be found, `value` what it must say."""
    CASES.append((name, made_by, body, layers, value, more))


def schema(kind, text, **more):
    """Registers a schema and gives its Confluent id."""
    SCHEMAS.append({"id": len(SCHEMAS) + 1, "kind": kind, "text": text, **more})
    return len(SCHEMAS)


def framed(number, payload): return b"\0" + struct.pack(">I", number) + payload


# --- JSON, text, XML ----------------------------------------------------------------------------
DOCUMENTS = {
    "order": {"id": "o-1", "total": 1999, "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}], "paid": True, "note": None},
    "numbers": {"big": 202201180000000014, "negative": -7210194211959421178, "unsigned": 23958446825181076828, "half": 0.5, "small": 1e-7},
    "texts": {"umlauts": "Grüße", "emoji": "😀", "escapes": "a\"b\\c\n\t\u0001", "long": "word " * 60},
    "list": [1, "two", [3], {"four": 4}],
}
COMPRESS = {
    "gzip": squeeze, "zlib": zlib.compress, "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
    "lz4": lz4.frame.compress, "snappy": snappy.compress,
    "snappy-framed": lambda data: (lambda c: c.add_chunk(data))(snappy.StreamCompressor()),
    "deflate": lambda data: (lambda c: c.compress(data) + c.flush())(zlib.compressobj(wbits=-15)),
    "brotli": brotli.compress, "base64": base64.b64encode, "base64url": lambda data: base64.urlsafe_b64encode(data).rstrip(b"="),
}
MADE_BY = {"zstd": "zstandard", "lz4": "lz4", "snappy": "python-snappy", "snappy-framed": "python-snappy", "brotli": "brotli"}
for name, document in DOCUMENTS.items():
    text = json.dumps(document, ensure_ascii=False).encode()
    case(f"json-{name}", "json", text, ["json"], document)
    case(f"json-{name}-ascii", "json", json.dumps(document, indent=2).encode(), ["json"], document)
    for step, pack in COMPRESS.items():
        found = step
        if step == "base64url" and not set(pack(text)) & set(b"-_"): found = "base64"
        case(f"{step}-json-{name}", MADE_BY.get(step, "Python"), pack(text), [found, "json"], document)
order = json.dumps(DOCUMENTS["order"]).encode()
case("gzip-in-base64", "Python", base64.b64encode(squeeze(order)), ["base64", "gzip", "json"], DOCUMENTS["order"])
case("gzip-in-base64-with-lines", "Python", base64.encodebytes(squeeze(json.dumps(DOCUMENTS["texts"]).encode())), ["base64", "gzip", "json"], DOCUMENTS["texts"])
case("zstd-in-gzip", "zstandard", squeeze(COMPRESS["zstd"](order)), ["gzip", "zstd", "json"], DOCUMENTS["order"])
case("gzip-two-members", "Python", squeeze(order[:20]) + squeeze(order[20:]), ["gzip", "json"], DOCUMENTS["order"])
case("gzip-level-9", "Python", squeeze(order, 9), ["gzip", "json"], DOCUMENTS["order"])
case("zstd-with-checksum", "zstandard", zstandard.ZstdCompressor(level=19, write_checksum=True).compress(order), ["zstd", "json"], DOCUMENTS["order"])
case("lz4-linked-blocks-checksum", "lz4", lz4.frame.compress(order * 1, block_linked=True, content_checksum=True, store_size=False), ["lz4", "json"], DOCUMENTS["order"])
case("gzip-text", "Python", squeeze(b"plain text"), ["gzip", "text"], "plain text")
case("brotli-text-by-header", "brotli", brotli.compress(b"plain text"), ["brotli", "text"], "plain text", headers=[["content-encoding", "br"]])
case("deflate-by-header-is-zlib", "Python", zlib.compress(b"plain text"), ["zlib", "text"], "plain text", headers=[["Content-Encoding", "deflate"]])
case("json-in-json-string", "json", json.dumps(json.dumps(DOCUMENTS["order"])).encode(), ["json-string", "json"], DOCUMENTS["order"])
case("json-lines", "json", b"\n".join(json.dumps(document).encode() for document in [{"a": 1}, {"a": 2}, [3]]) + b"\n", ["json-lines"], [{"a": 1}, {"a": 2}, [3]])
case("json-repeated-keys", "by hand", b'{"a": 1, "b": 2, "a": 3}', ["json"], Raw('{"pairs":[["a",1],["b",2],["a",3]]}'))
case("json-lone-surrogate", "json", json.dumps({"s": "\ud800 x"}).encode(), ["json"], {"s": {"utf16": "d800 0020 0078"}})
case("json-exact-numbers", "by hand", b'[1.0, 1.10, 1E400, -0, 0.1e-7, 123456789012345678901234567890.5]', ["json"], Raw("[1.0,1.10,1E400,-0,0.1e-7,123456789012345678901234567890.5]"))
case("json-key-order", "json", b'{"z":1,"a":2,"m":3}', ["json"], {"z": 1, "a": 2, "m": 3})
case("json-looks-like-a-mark", "json", b'{"bytes":"AP8="}', ["json"], Raw('{"pairs":[["bytes","AP8="]]}'))
nest = "[" * 100 + "]" * 100
case("json-100-deep", "by hand", nest.encode(), ["json"], Raw(nest))
case("json-null", "json", b"null", ["json"], None)
case("json-control-characters", "json", json.dumps("\0\x1b\x7f").encode(), ["json"], "\0\x1b\x7f")
case("null", "by hand", None, ["null"], None)
case("empty", "by hand", b"", ["empty"], "")
for name, text in {"words": "hello world", "base64-like": "SGVsbG8gd29ybGQ", "hex-like": "d41d8cd98f00b204e9800998ecf8427e", "log": "03:10 ERROR timeout: db-3\n\tat x.Y\n", "unicode": "日本語 😀"}.items():
    case(f"text-{name}", "by hand", text.encode(), ["text"], text)
for name, text in {"plain": "<a b='1'><c/></a>", "declaration": '<?xml version="1.0" encoding="UTF-8"?>\n<o xmlns="u">ü</o>', "cdata": "<a><![CDATA[<]]><!-- x --></a>", "entity-bomb": '<!DOCTYPE l [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]><l>&b;</l>'}.items():
    case(f"xml-{name}", "by hand", text.encode(), ["xml"], text)
german = '{"grüße":"ä€"}'
parsed = {"grüße": "ä€"}
case("utf-8-bom", "Python", german.encode("utf-8-sig"), ["utf-8", "json"], parsed)
case("utf-16le-bom", "Python", b"\xff\xfe" + german.encode("utf-16-le"), ["utf-16le", "json"], parsed)
case("utf-16be-bom", "Python", b"\xfe\xff" + german.encode("utf-16-be"), ["utf-16be", "json"], parsed)
case("utf-16le", "Python", german.encode("utf-16-le"), ["utf-16le", "json"], parsed)
case("utf-16be", "Python", german.encode("utf-16-be"), ["utf-16be", "json"], parsed)
case("utf-32le-bom", "Python", b"\xff\xfe\0\0" + german.encode("utf-32-le"), ["utf-32le", "json"], parsed)
case("utf-32be-bom", "Python", b"\0\0\xfe\xff" + german.encode("utf-32-be"), ["utf-32be", "json"], parsed)
case("utf-32le", "Python", german.encode("utf-32-le"), ["utf-32le", "json"], parsed)
case("latin-1", "Python", "Müller, Straße 5, Köln".encode("latin-1"), ["windows-1252", "text"], "Müller, Straße 5, Köln")
case("latin-1-by-header", "Python", "café".encode("latin-1"), ["windows-1252", "text"], "café", content_type="text/plain; charset=ISO-8859-1")
case("windows-1251-by-header", "Python", "Привет, мир".encode("cp1251"), ["windows-1251", "text"], "Привет, мир", content_type="text/plain; charset=windows-1251")
case("shift-jis-by-header", "Python", '{"名":"値"}'.encode("shift_jis"), ["shift_jis", "json"], {"名": "値"}, content_type='application/json; charset="Shift_JIS"')
case("xml-declares-latin-1", "Python", '<?xml version="1.0" encoding="ISO-8859-1"?><a>ü</a>'.encode("latin-1"), ["windows-1252", "xml"], '<?xml version="1.0" encoding="ISO-8859-1"?><a>ü</a>')

# --- MessagePack and CBOR -----------------------------------------------------------------------
VALUES = {
    "order": DOCUMENTS["order"], "integers": {"values": [0, 127, 128, 255, 256, 65536, 4294967296, 18446744073709551615, -1, -32, -33, -129, -32769, -2147483649, -9223372036854775808]},
    "floats": {"values": [0.5, -1.25, 1e300, float("inf"), float("-inf")]}, "nan": {"value": float("nan")},
    "bytes": {"blob": b"\0\xff", "long": bytes(300)}, "keys": {"outer": {1: "one", 2: "two"}},
    "texts": DOCUMENTS["texts"], "many": {"values": list(range(1000))}, "empties": {"m": {}, "l": [], "t": "", "b": b""}, "booleans": {"yes": True, "no": False, "none": None},
}
for name, value in VALUES.items():
    case(f"msgpack-{name}", "msgpack", msgpack.packb(value), ["msgpack"], value)
    case(f"cbor-{name}", "cbor2", cbor2.dumps(value), ["cbor"], value)
case("msgpack-single-floats", "msgpack", msgpack.packb({"value": 0.1}, use_single_float=True), ["msgpack"], {"value": 0.1})
case("msgpack-old-raw", "msgpack", msgpack.packb({"text-of-old": "grüße"}, use_bin_type=False), ["msgpack"], {"text-of-old": "grüße"})
moment = datetime.datetime(2026, 11, 30, 3, 10, 0, 123000, UTC)
nanos = 1796008200123000000
case("msgpack-timestamp", "msgpack", msgpack.packb({"time-of-it": moment}, datetime=True), ["msgpack"], {"time-of-it": time("2026-11-30T03:10:00.123Z", nanos)})
case("msgpack-extension", "msgpack", msgpack.packb({"extension": msgpack.ExtType(5, b"abc")}), ["msgpack"], {"extension": tag("ext 5", b"abc")})
case("msgpack-by-content-type", "msgpack", msgpack.packb([1, 2, 3]), ["msgpack"], [1, 2, 3], content_type="application/x-msgpack")
case("msgpack-in-gzip", "msgpack", squeeze(msgpack.packb(DOCUMENTS["order"])), ["gzip", "msgpack"], DOCUMENTS["order"])
case("msgpack-in-base64", "msgpack", base64.b64encode(msgpack.packb(DOCUMENTS["order"])), ["base64", "msgpack"], DOCUMENTS["order"])
case("cbor-big-integers", "cbor2", cbor2.dumps({"values": [2**64, -2**64 - 1, 2**200]}), ["cbor"], {"values": [2**64, -2**64 - 1, 2**200]})
case("cbor-decimal", "cbor2", cbor2.dumps({"price-of-it": decimal.Decimal("273.15")}), ["cbor"], {"price-of-it": decimal.Decimal("273.15")})
case("cbor-datetime", "cbor2", cbor2.dumps({"time-of-it": moment}), ["cbor"], {"time-of-it": tag("0", "2026-11-30T03:10:00.123000Z")})
case("cbor-uuid", "cbor2", cbor2.dumps({"the-id": uuid.UUID(int=7)}), ["cbor"], {"the-id": tag("37", uuid.UUID(int=7).bytes)})
case("cbor-undefined", "cbor2", cbor2.dumps({"the-value": cbor2.undefined}), ["cbor"], {"the-value": tag("simple", 23)})
case("cbor-canonical-halves", "cbor2", cbor2.dumps({"values": [0.5, 1.5]}, canonical=True), ["cbor"], {"values": [0.5, 1.5]})
case("cbor-by-content-type", "cbor2", cbor2.dumps([1, 2, 3]), ["cbor"], [1, 2, 3], content_type="application/cbor")
case("cbor-indefinite", "by hand, RFC 8949", bytes.fromhex("bf6346756ef563416d7421ff"), ["cbor"], {"Fun": True, "Amt": -2})

# --- Avro ---------------------------------------------------------------------------------------
def avro(definition, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(definition), value)
    return out.getvalue()


def record(*fields, name="R", **more): return {"type": "record", "name": name, "fields": [dict(name=name, type=kind, **rest) for name, kind, rest in fields], **more}
def field(name, kind, **rest): return (name, kind, rest)
def logical(base, name, **more): return {"type": base, "logicalType": name, **more}


AVRO = {
    "primitives": (record(field("b", "boolean"), field("i", "int"), field("l", "long"), field("f", "float"), field("d", "double"), field("s", "string"), field("y", "bytes"), field("n", "null")),
                   {"b": True, "i": -2147483648, "l": 9223372036854775807, "f": 0.5, "d": 1e300, "s": "grüße", "y": b"\0\xff", "n": None}, None),
    "special-floats": (record(field("a", "double"), field("b", "double"), field("c", "float")), {"a": float("nan"), "b": float("-inf"), "c": float("inf")}, None),
    "decimal-bytes": (record(field("price", logical("bytes", "decimal", precision=10, scale=2))), {"price": decimal.Decimal("40.58")}, None),
    "decimal-negative": (record(field("price", logical("bytes", "decimal", precision=30, scale=4))), {"price": decimal.Decimal("-12345678901234567890.1230")}, None),
    "decimal-fixed": (record(field("price", {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2})), {"price": decimal.Decimal("-0.05")}, None),
    "timestamp-millis": (record(field("at", logical("long", "timestamp-millis"))), {"at": moment}, {"at": time("2026-11-30T03:10:00.123Z", 1796008200123)}),
    "timestamp-micros": (record(field("at", logical("long", "timestamp-micros"))), {"at": moment}, {"at": time("2026-11-30T03:10:00.123Z", 1796008200123000)}),
    "timestamp-before-1970": (record(field("at", logical("long", "timestamp-millis"))), {"at": EPOCH - datetime.timedelta(milliseconds=1)}, {"at": time("1969-12-31T23:59:59.999Z", -1)}),
    "local-timestamp": (record(field("at", logical("long", "local-timestamp-millis"))), {"at": datetime.datetime(2026, 11, 30, 3, 10)}, {"at": time("2026-11-30T03:10:00", 1796008200000)}),
    "date": (record(field("on", logical("int", "date"))), {"on": datetime.date(2026, 11, 30)}, {"on": time("2026-11-30", 20787)}),
    "time-millis": (record(field("at", logical("int", "time-millis"))), {"at": datetime.time(3, 10, 0, 123000)}, {"at": time("03:10:00.123", 11400123)}),
    "time-micros": (record(field("at", logical("long", "time-micros"))), {"at": datetime.time(3, 10)}, {"at": time("03:10:00", 11400000000)}),
    "uuid": (record(field("id", logical("string", "uuid"))), {"id": uuid.UUID(int=7)}, {"id": str(uuid.UUID(int=7))}),
    "enum": (record(field("state", {"type": "enum", "name": "S", "symbols": ["NEW", "PAID"]})), {"state": "PAID"}, None),
    "fixed": (record(field("hash", {"type": "fixed", "name": "H", "size": 4})), {"hash": b"\1\2\3\4"}, None),
    "union-null": (record(field("a", ["null", "string"], default=None), field("b", ["null", "string"], default=None)), {"a": None, "b": "x"}, None),
    "union-many": (record(field("values", {"type": "array", "items": ["null", "int", "string", "double", record(field("a", "int"), name="In")]})), {"values": [None, 5, "x", 0.5, {"a": 1}]}, None),
    "array-and-map": (record(field("list", {"type": "array", "items": "long"}), field("map", {"type": "map", "values": {"type": "array", "items": "string"}})), {"list": list(range(500)), "map": {"k": ["a", "b"], "l": []}}, None),
    "recursive": (record(field("n", "int"), field("next", ["null", "R"])), {"n": 1, "next": {"n": 2, "next": {"n": 3, "next": None}}}, None),
    "namespaces": (record(field("in", record(field("a", "int"), name="In", namespace="y")), field("again", "y.In"), namespace="x"), {"in": {"a": 1}, "again": {"a": 2}}, None),
    "empty-record": (record(), {}, None),
    "bare-string": ("string", "hello", None),
    "bare-array": ({"type": "array", "items": "int"}, [1, 2, 3], None),
}
for name, (definition, value, shown) in AVRO.items():
    number = schema("avro", json.dumps(definition), subject=f"{name}-value", version=1)
    case(f"avro-{name}", "fastavro", framed(number, avro(definition, value)), ["confluent", "avro"], value if shown is None else shown)
definition = record(field("id", "string"), field("n", "int"))
value, number = {"id": "o-1", "n": 7}, schema("avro", json.dumps(definition), subject="orders-value", version=7)
payload = avro(definition, value)
guid, glue, azure = uuid.UUID(int=11), uuid.UUID(int=12), "0123456789abcdef" * 2
print_ = int.from_bytes(bytes.fromhex(fingerprint(fastavro.schema.to_parsing_canonical_form(definition), "CRC-64-AVRO")), "little")
for key in ({"confluent-guid": str(guid)}, {"glue": str(glue)}, {"azure": azure}, {"fingerprint": print_}, {"apicurio-global": 70}, {"apicurio-content": 71}):
    SCHEMAS.append({"key": key, "kind": "avro", "text": json.dumps(definition), "subject": "orders-value", "version": 7})
case("avro-in-gzip", "fastavro", squeeze(framed(number, payload)), ["gzip", "confluent", "avro"], value)
case("avro-in-base64", "fastavro", base64.b64encode(framed(number, payload)), ["base64", "confluent", "avro"], value)
case("avro-key", "fastavro", framed(number, payload), ["confluent", "avro"], value, part="key")
case("avro-guid-in-a-header", "fastavro", payload, ["confluent-guid", "avro"], value, headers=[["__value_schema_id", {"base64": b64(b"\1" + guid.bytes)}]])
case("avro-guid-of-a-key", "fastavro", payload, ["confluent-guid", "avro"], value, part="key", headers=[["__key_schema_id", {"base64": b64(b"\1" + guid.bytes)}]])
case("avro-guid-before-it", "fastavro", b"\1" + guid.bytes + payload, ["confluent-guid", "avro"], value)
case("avro-apicurio-eight-bytes", "fastavro", b"\0" + struct.pack(">q", 70) + payload, ["apicurio", "avro"], value)
case("avro-apicurio-global-header", "fastavro", payload, ["apicurio-headers", "avro"], value, headers=[["apicurio.value.globalId", {"base64": b64(struct.pack(">q", 70))}]])
case("avro-apicurio-content-header", "fastavro", payload, ["apicurio-headers", "avro"], value, headers=[["apicurio.value.contentId", {"base64": b64(struct.pack(">q", 71))}]])
case("avro-glue", "fastavro", b"\3\0" + glue.bytes + payload, ["glue", "avro"], value)
case("avro-glue-zlib", "fastavro", b"\3\5" + glue.bytes + zlib.compress(payload), ["glue", "zlib", "avro"], value)
case("avro-single-object", "fastavro", b"\xc3\1" + struct.pack("<Q", print_) + payload, ["avro-single-object", "avro"], value)
case("avro-azure", "fastavro", payload, ["azure", "avro"], value, content_type=f"avro/binary+{azure}")
for codec in ("null", "deflate", "snappy"):
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(definition), [value, {"id": "o-2", "n": 8}], codec=codec, sync_marker=bytes(range(16)))
    case(f"avro-file-{codec}", "fastavro", out.getvalue(), ["avro-file"], [value, {"id": "o-2", "n": 8}])
number = schema("json", json.dumps({"type": "object"}), subject="js-value", version=1)
case("json-schema", "json", framed(number, order), ["confluent", "json"], DOCUMENTS["order"])
case("confluent-json-without-registry", "json", framed(9999, order), ["confluent", "json"], DOCUMENTS["order"])

# --- Protobuf -----------------------------------------------------------------------------------
PROTO = '''syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/protobuf/any.proto";
enum State { NEW = 0; PAID = 1; }
message Order { string id = 1; int64 total = 2; State state = 3; repeated int32 n = 4; map<string, int32> tags = 5; Line line = 6;
  google.protobuf.Timestamp at = 7; oneof pay { string card = 8; bytes token = 9; } google.protobuf.Any extra = 10;
  map<int32, string> names = 11; repeated Line lines = 12; repeated string words = 13;
  message Line { string sku = 1; sint32 count = 2; } }
message Numbers { double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6; sint32 s32 = 7; sint64 s64 = 8;
  fixed32 f32 = 9; fixed64 f64 = 10; sfixed32 sf32 = 11; sfixed64 sf64 = 12; bool b = 13; optional int32 maybe = 14; }
message Newer { string id = 1; string added = 99; int64 also = 100; }
message Older { string id = 1; }
'''
work = tempfile.mkdtemp()
open(os.path.join(work, "shop.proto"), "w").write(PROTO)
import grpc_tools
subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{work}", f"-I{os.path.join(os.path.dirname(grpc_tools.__file__), '_proto')}", f"--python_out={work}", "shop.proto"], check=True)
sys.path.insert(0, work)
import shop_pb2 as pb
number = schema("protobuf", PROTO, subject="shop-value", version=1)
def indexes(*path): return b"\0" if path == (0,) else b"".join(bytes([index * 2]) for index in (len(path), *path))
def proto(name, path, message, value, by="protobuf"): case(f"protobuf-{name}", by, framed(number, indexes(*path) + (message if isinstance(message, bytes) else message.SerializeToString(deterministic=True))), ["confluent", "protobuf"], value)


proto("order", (0,), pb.Order(id="o-1", total=9007199254740993, state=pb.PAID, n=[1, -2, 300]), {"id": "o-1", "total": 9007199254740993, "state": "PAID", "n": [1, -2, 300]})
proto("maps", (0,), pb.Order(tags={"x": 1, "y": 0}, names={7: "seven"}), {"tags": {"x": 1, "y": 0}, "names": {7: "seven"}})
proto("nested", (0,), pb.Order(line=pb.Order.Line(sku="a", count=-5), lines=[pb.Order.Line(sku="b"), pb.Order.Line()]), {"line": {"sku": "a", "count": -5}, "lines": [{"sku": "b"}, {}]})
at = pb.Order()
at.at.FromNanoseconds(nanos)
proto("timestamp", (0,), at, {"at": time("2026-11-30T03:10:00.123Z", nanos)})
proto("oneof-text", (0,), pb.Order(card="4711"), {"card": "4711"})
proto("oneof-bytes", (0,), pb.Order(token=b"\0\xff"), {"token": b"\0\xff"})
packed = pb.Order(id="o-2")
packed.extra.Pack(pb.Older(id="inside"))
proto("any", (0,), packed, {"id": "o-2", "extra": {"@type": "type.googleapis.com/shop.Older", "@value": {"id": "inside"}}})
proto("unicode", (0,), pb.Order(id="grüße 😀", words=["ä", "", "ö"]), {"id": "grüße 😀", "words": ["ä", "", "ö"]})
proto("empty-message", (0,), pb.Order(), {})
proto("nested-index", (0, 0), pb.Order.Line(sku="x", count=2147483647), {"sku": "x", "count": 2147483647})
proto("numbers-highest", (1,), pb.Numbers(d=1e300, f=0.5, i32=2**31 - 1, i64=2**63 - 1, u32=2**32 - 1, u64=2**64 - 1, s32=2**31 - 1, s64=2**63 - 1, f32=2**32 - 1, f64=2**64 - 1, sf32=2**31 - 1, sf64=2**63 - 1, b=True, maybe=0),
      {"d": 1e300, "f": 0.5, "i32": 2**31 - 1, "i64": 2**63 - 1, "u32": 2**32 - 1, "u64": 2**64 - 1, "s32": 2**31 - 1, "s64": 2**63 - 1, "f32": 2**32 - 1, "f64": 2**64 - 1, "sf32": 2**31 - 1, "sf64": 2**63 - 1, "b": True, "maybe": 0})
proto("numbers-lowest", (1,), pb.Numbers(d=float("-inf"), f=float("nan"), i32=-2**31, i64=-2**63, s32=-2**31, s64=-2**63, sf32=-2**31, sf64=-2**63),
      {"d": float("-inf"), "f": float("nan"), "i32": -2**31, "i64": -2**63, "s32": -2**31, "s64": -2**63, "sf32": -2**31, "sf64": -2**63})
proto("unknown-fields", (3,), pb.Newer(id="a", added="b", also=3), {"id": "a", "99": "b", "100": 3})
proto("unknown-enum", (0,), bytes([0x18, 0x63]), {"state": 99}, "by hand")
proto("unpacked", (0,), bytes([0x20, 1, 0x20, 2, 0x22, 1, 3]), {"n": [1, 2, 3]}, "by hand")
case("protobuf-wire-tree", "protobuf", pb.Newer(id="testing", added="x" * 5, also=150).SerializeToString(), ["protobuf"], {"1": "testing", "99": "xxxxx", "100": 150})
case("protobuf-by-content-type", "protobuf", pb.Numbers(i32=150, f32=1).SerializeToString(), ["protobuf"], {"3": 150, "9": tag("fixed32", 1)}, content_type="application/x-protobuf")
case("protobuf-nested-wire-tree", "protobuf", pb.Order(id="abc", line=pb.Order.Line(sku="sku-1", count=1)).SerializeToString(), ["protobuf"], {"1": "abc", "6": {"1": "sku-1", "2": 2}})

# --- numbers, Java, CloudEvents -----------------------------------------------------------------
for name, number in {"long": 12345, "long-negative": -2, "long-high": 2**40}.items():
    case(f"key-{name}", "by hand, LongSerializer", struct.pack(">q", number), ["int64"], number, part="key")
case("key-int", "by hand, IntegerSerializer", struct.pack(">i", 7), ["int32"], 7, part="key")
for line in map(json.loads, open(JAVA)):
    body = base64.b64decode(line["body"])
    if line["said"] in ("zlib", "gzip"): case(line["name"], "Java", body, [line["said"], "json"], {"made": "by Java", "n": 1})
    else: case(line["name"], "Java", body, ["java-serialized"], {"java": line["said"], "bytes": body})
case("cloud-event-structured", "by hand", b'{"specversion":"1.0","id":"1","type":"t","source":"/s","data":{"a":1}}', ["json"], {"specversion": "1.0", "id": "1", "type": "t", "source": "/s", "data": {"a": 1}}, content_type="application/cloudevents+json")
case("cloud-event-binary", "by hand", b'{"a":1}', ["json"], {"a": 1}, headers=[["ce_specversion", "1.0"], ["ce_id", "1"], ["ce_type", "t"], ["ce_source", "/s"], ["content-type", "application/json"]])
for name, body in {"bytes-random": bytes.fromhex("fffb9164a0e1"), "bytes-two": b"\x91\x05", "bytes-cut-gzip": squeeze(order)[:40]}.items():
    case(name, "by hand", body, ["hex"], body)

assert len({name for name, *_ in CASES}) == len(CASES), "names are unique"
with open(os.path.join(FOLDER, "payloads.ndjson"), "w") as out:
    for name, made_by, body, layers, value, more in CASES:
        start = json.dumps({"name": name, "made_by": made_by, "body": None if body is None else b64(body), **more, "layers": layers})
        out.write(start[:-1] + ', "value": ' + dump(value) + "}\n")
with open(os.path.join(FOLDER, "schemas.json"), "w") as out:
    json.dump(SCHEMAS, out, indent=1)
    out.write("\n")
print(len(CASES), "payloads,", len(SCHEMAS), "schemas")
