"""What `nrg attribute` should say. The truth of a row is power above idle of its thread (and of the pool that works for it) while its span is
innermost, with its part of the uncore power. Other processes and workers without spans are never a row's."""

import numpy as np

from tracks import Thread


class Sums:
    """Joules of each path (without what is below it; first: of no span), of each step, of workers and of others."""

    def __init__(self, n_paths):
        self.own, self.steps = np.zeros(n_paths + 1), {}
        self.workers = self.others = 0.0

    def add(self, path, step, joules):
        self.own += np.bincount(path + 1, joules, len(self.own))
        for number, step_j in enumerate(np.bincount(step + 1, joules)):
            if number and step_j:
                self.steps[number - 1] = self.steps.get(number - 1, 0) + step_j

    def add_part(self, part, state, joules):
        if isinstance(part, Thread):
            inside, i = state.segment >= 0, np.maximum(state.segment, 0)
            self.add(np.where(inside, part.path[i], -1), np.where(inside, part.step_of[i], -1), joules)
        elif part.owner == "worker":
            self.workers += joules.sum()
        else:
            self.others += joules.sum()


def label(names, place):
    """(kind, name) of all that a place is in and of itself; ranks go by their detail."""
    by_id, labels = {number: key for key, number in names.ids.items()}, []
    while place >= 0:
        place, name_id = names.places[place]
        kind, name, detail = by_id[name_id]
        labels.append([kind, detail if "rank" in detail else name])
    return labels[::-1]


def rows(names, threads, own):
    """Of each place: joules with and without what is below, whether nothing is, calls."""
    inclusive, children = own.copy(), np.zeros(len(own), int)
    for place in reversed(range(len(own))):
        parent = names.places[place][0]
        if parent >= 0:
            inclusive[parent] += inclusive[place]
            children[parent] += 1
    calls = dict.fromkeys(range(len(own)), 0)
    for thread in threads:
        for place, n in thread.calls.items():
            calls[place] += n
    return [dict(path=label(names, place), j=inclusive[place], self_j=own[place], leaf=int(children[place] == 0), calls=calls[place])
            for place in range(len(own))]


def truth(names, threads, power, gpus):
    sums = Sums(len(names.places))
    for part, state, joules in power.part_joules():
        sums.add_part(part, state, joules)
    total, idle = power.run_joules()
    for gpu in gpus:
        sums.add(gpu.thread.path, gpu.thread.step_of, gpu.segment_joules())
        gpu_total, gpu_idle = gpu.run_joules()
        total += gpu_total
        idle += gpu_idle
    unattributed = sums.workers + sums.own[0]
    if gpus:
        unattributed = total - idle - sums.others - sums.own[1:].sum()
    return dict(total_j=total, idle_j=idle, other_j=sums.others, unattributed_j=unattributed, steps=sums.steps,
                rows=rows(names, threads, sums.own[1:]))
