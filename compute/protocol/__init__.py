"""The protocol between the controller and a replica: commands, responses, the reducible history, frames.

command    what the controller may say, stage by stage
response   what a replica answers
history    the commands that still matter, for a replica that (re)connects
framing    length-prefixed msgpack on a byte stream
"""
