"""What went over the wire? Files of tshark, dumpcap and tcpdump, and the TCP streams in them.

Written by hand: these are fixed layouts of a few hundred lines, and all of it reads bytes of strangers. scapy is a
workbench much larger than the need; dpkt has no reassembly, which is the part that is work.
"""
