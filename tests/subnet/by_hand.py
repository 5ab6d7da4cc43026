"""Files as people write them, each with constructs of its own. GUIDs as in tests/subnet/test_adoption.py.

The shapes follow public files; node0N port 1 is 0x0210fa0300aN0001, and 0x0210fa0300ff0001 is on no fabric.
"""

BY_HAND: dict[str, bytes] = {
    "A06": b"""Default=0x7fff, rate=7, mtu=4, scope=2, defmember=full:
        ALL=full, SELF=full, ALL_SWITCHES=full;
Default=0x7fff, ipoib, rate=7, mtu=4, scope=2:
mgid=ff12:401b:ffff::ffff:ffff  # copied from an error log
        mgid=ff12:401b::ffff:ffff       # IPv4 broadcast
        mgid=ff12:401b::16              # IGMP
        mgid=ff12:601b::16              # MLDv2
        mgid=ff12:601b::1:3             # LLMNR
        ALL=full, SELF=full, ALL_SWITCHES=full;
""",
    "A11": b"""# team-a
0x8001 : ALL=full ;
# team-b
0x8002 : ALL=full ;
""",
    "A22": b"""Default=0x7fff : ALL, SELF=full ;
NewPartition , ipoib : 0x0210fa0300a20001=full, 0x0210fa0300a30001=limi, 0x0210fa0300a40001=fu ;
Other , i , d=f : 0x0210fa0300a50001 ;
""",
    "A23": b"""Default=0x7fff : ALL=full;
ShareIO = 0x80 , defmember=full : 0x0210fa0300a10001, 0x0210fa0300a20001;
# next two limited
ShareIO = 0x80 : 0x0210fa0300a30001, 0x0210fa0300a40001=full;
shareio-renamed = 0x8080 , defmember=full : 0x0210fa0300a50001, 0x0210fa0300a60001=limited;
""",
    "A39": b"""Default=0x7fff : AL=f, S=f;
Ten=0x10 : ALL_C;
""",
    "A41": """Default=0x7fff:ALL=full;
"GPU tenant-A (prod)"=0x10: 0x0210fa0300a20001=full;
föräldralös ÄÖ=0x11: 0x0210fa0300a30001=full;
this-name-is-longer-than-thirty-one-characters=0x12: 0x0210fa0300a40001=full;
""".encode(),
    "A44": b"""Ten=0x10,ipoib: 0x0210fa0300a20001=full, 0x0210fa0300a30001=full;
""",
    "A45": b"""Default=0x7fff,ipoib,: ALL=full,;
Ten=0x10:,0x0210fa0300a20001=full,,0x0210fa0300a30001,;
""",
    "A46": b"""Default=0x7fff:ALL=full;
Hollow=0x10: ;
Nobody=0x11: NONE;
Future=0x12: 0x0210fa0300ff0001=full;
""",
    "A57": b"""Default=0x7fff:ALL=full, 0x0210fa0300a40001=limited;
Ten=0x10: 0x0210fa0300a20001=full, 0x0210fa0300a30001=full;
Ten=0x10: 0x0210fa0300a20001=limited;
Ten=0x10: 0x0210fa0300a30001;
""",
}
