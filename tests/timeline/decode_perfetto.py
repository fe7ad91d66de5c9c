"""Prints the slices of a binary Perfetto trace as one JSON object (perfetto's protobuf classes).

Exit code 77: the package is not installed.
"""

import json
import sys

try:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
except ImportError:
    sys.exit(77)


def main(path):
    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    tracks, names, categories, stacks, slices, notes, counters = {}, {}, {}, {}, [], [], []
    flows = {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        names.update({entry.iid: entry.name for entry in packet.interned_data.event_names})
        categories.update({entry.iid: entry.name for entry in packet.interned_data.event_categories})
        if not packet.HasField("track_event"):
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        assert track in tracks, "an event on a track without a descriptor"
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            name = event.name or names[event.name_iid]
            category = categories[event.category_iids[0]]
            stacks.setdefault(track, []).append((packet.timestamp, name, category))
            for flow in [*event.flow_ids, *event.terminating_flow_ids]:
                flows.setdefault(flow, []).append(name)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin, name, category = stacks[track].pop()
            slices.append([tracks[track], name, category, begin, packet.timestamp])
        elif event.type == TrackEvent.TYPE_COUNTER:
            counters.append([tracks[track], packet.timestamp, event.double_counter_value])
        elif event.type == TrackEvent.TYPE_INSTANT:
            notes += [note.string_value for note in event.debug_annotations]
    assert not any(stacks.values()), "a slice without an end"
    json.dump(
        {"slices": sorted(slices), "notes": notes, "counters": counters, "flows": sorted(flows.values())},
        sys.stdout,
    )


main(sys.argv[1])
