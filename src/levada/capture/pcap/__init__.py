"""Capture files of tshark, dumpcap and tcpdump.

Written by hand: these are fixed layouts of a few hundred lines, and all of it reads untrusted bytes. scapy is a
workbench much larger than the need; dpkt has no reassembly, which is the hard part.
"""
