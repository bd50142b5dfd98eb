"""Scenarios of the second simulator, by name: what each changes of B (words.py says what the words mean)."""

B = dict(layers=12, len=(0.3e-3, 6e-3), T=20.0, idle=(5, 80))


def s(**k):
    d = dict(B)
    d.update(k)
    return d


ms = 1e-3
S = {
    # --- plain RAPL, other shapes
    'plain12': s(),
    'plain3': s(layers=3),
    'plain30': s(layers=30, len=(0.1 * ms, 4 * ms)),
    'T5': s(T=5.0),
    'T5-rate10': s(T=5.0, rate=10, len=(0.3 * ms, 2 * ms)),
    'T300-rate10': s(T=300.0, rate=10, layers=8, len=(2 * ms, 20 * ms)),
    'us50': s(len=(50e-6, 400e-6), T=10.0),
    'irregular': s(irregular=1, reps=1),
    'partial': s(partial=1, irregular=1, T=60.0, len=(1 * ms, 8 * ms)),
    'nested': s(nested=0.3, T=30.0),
    'nested30': s(nested=0.1, layers=30, partial=1, irregular=1, T=30.0),
    'gaps': s(gap=(0.3, 0.03, 'sleep')),
    'gapspan': s(gap=(0.3, 0.03, 'span')),
    'warm': s(warm=5),
    'warm-gap': s(warm=10, gap=(0.2, 0.05, 'span'), nested=0.2),
    'dram-uncore': s(dram=1, uncore=1),
    'dram-own-clock': s(dram=1, uncore=1, rapl_same=0),
    'wrap': s(wrap=2**22, dram=1),
    'unit15': s(unit=15.2587890625e-6, wrap=2**32, update='p976'),
    # --- clocks
    'p976-jit': s(update='p976', ujit=30e-6),
    'ms-instep': s(update='ms', late=1),
    'ms-instep-60': s(update='ms', T=60.0),
    'wander': s(update='wander'),
    'rate50': s(rate=50),
    'rate200': s(rate=200),
    'rate1000': s(rate=1000),
    'rate1000-ms': s(rate=1000, update='ms', ujit=10e-6),
    'rate10': s(rate=10, T=60.0),
    'rate1000-jit': s(rate=1000, ujit=60e-6, update='p976'),
    'drop': s(drop=0.05, dropburst=1),
    'late-heavy': s(late=10),
    'drop-rate10': s(rate=10, T=60.0, drop=0.1, dropburst=1),
    # --- noise
    'white3': s(noise=(0.03, 0)),
    'onef2': s(noise=(0, 0.02)),
    'both': s(noise=(0.02, 0.02), T=60.0),
    'both-rate10': s(noise=(0.02, 0.02), T=60.0, rate=10),
    'both-1k': s(noise=(0.02, 0.02), rate=1000),
    'idle-noise': s(inoise=0.02, idle=(40, 80)),
    # --- freq / drift
    'turbo': s(turbo=(10.0, 1.25)),
    'turbo60': s(turbo=(10.0, 1.25), T=60.0),
    'fsteps': s(fsteps=1, T=60.0),
    'drift-exp': s(drift=('exp', 0.15), idle=(40, 80)),
    'drift-sin': s(drift=('sin', 0.08), idle=(40, 80), T=60.0),
    'drift-exp-2bl': s(drift=('exp', 0.15), idle=(40, 80), baseline2=3.0, T=60.0),
    'drift-lin10': s(drift=('lin', -0.1), idle=(40, 80), rate=10, T=60.0),
    'nobl': s(baseline=0),
    'nobl-gap': s(baseline=0, gap=(0.3, 0.05, 'sleep'), T=60.0),
    'nobl-10': s(baseline=0, rate=10, T=60.0),
    'nobl-noise': s(baseline=0, noise=(0.01, 0.01), T=60.0),
    'nobl-drift': s(baseline=0, drift=('exp', 0.1), T=60.0),
    # --- others
    'o-steady': s(others=['steady']),
    'o-bursty': s(others=['bursty'], T=60.0),
    'o-rare': s(others=['rare'], T=60.0),
    'o-full': s(others=['full']),
    'o-two-stat': s(others=['steady', 'rare'], busy='stat', T=60.0),
    'o-bursty10': s(others=['bursty'], rate=10, T=60.0, busy='stat'),
    'o-noise': s(others=['bursty'], noise=(0.02, 0.02), T=60.0),
    # --- busy sources
    'stat': s(busy='stat'),
    'sampled': s(busy='sampled'),
    'stat-rev1': s(busy='stat', rev=1),
    'nobusy': s(busy='none'),
    'nothreads': s(threadrows=0),
    # --- threads
    'thr2': s(threads=2),
    'thr4-own': s(threads=4, same=0, layers=4),
    'thr8': s(threads=8, layers=5, cpus=8),
    'thr2-noise': s(threads=2, noise=(0.02, 0.02), T=60.0),
    'thr4-10': s(threads=4, same=0, layers=3, rate=10, T=60.0),
    'pool3': s(pool=3),
    'thr3-gap-others': s(threads=3, same=0, layers=4, gap=(0.3, 0.03, 'sleep'), others=['bursty'], T=60.0),
    # --- stalls
    'stall-u': s(stall='uniform', T=60.0),
    'stall-start': s(stall='start', T=60.0),
    'stall-end': s(stall='end', T=60.0),
    'stall-heavy': s(stall='heavy', T=60.0),
    'stall-u-e': s(stall='uniform', edges=1, T=60.0),
    'stall-start-e': s(stall='start', edges=1, T=60.0),
    'stall-end-e': s(stall='end', edges=1, T=60.0),
    'stall-heavy-e': s(stall='heavy', edges=1, T=60.0),
    'stall-u10-e': s(stall='uniform', edges=1, T=60.0, rate=10),
    'stall-heavy10-e': s(stall='heavy', edges=1, T=60.0, rate=10),
    'stall-uneven-e': s(stall='uniform', stall_uneven=1, edges=1, T=60.0),
    'stall-1k-e': s(stall='uniform', edges=1, rate=1000),
    'stall-noise-e': s(stall='uniform', edges=1, noise=(0.02, 0.02), T=60.0),
    'stall-thr2-e': s(stall='uniform', edges=1, threads=2, T=60.0),
    'stall-big-e': s(stall='uniform', stall_frac=2.0, edges=1, T=60.0),
    'stall-nest-e': s(stall='uniform', nested=0.3, edges=1, T=60.0, partial=1),
    # --- long spans
    'long': s(len=(0.3, 3.0), layers=3, T=60.0),
    'long10': s(len=(0.3, 3.0), layers=3, T=60.0, rate=10),
    'long-noise10': s(len=(0.3, 3.0), layers=3, T=60.0, rate=10, noise=(0.02, 0.02)),
    'long-300': s(len=(0.3, 3.0), layers=12, T=300.0, rate=10, noise=(0.01, 0.02)),
    'mid': s(len=(0.03, 0.4), layers=12, T=60.0, rate=10),
    'mid-noise': s(len=(0.03, 0.4), layers=12, T=60.0, noise=(0.02, 0.02)),
    'mixed': s(len=(50e-6, 0.5), layers=12, T=60.0),
    'mixed-noise': s(len=(50e-6, 0.5), layers=12, T=60.0, noise=(0.02, 0.01)),
    'mixed-turbo': s(len=(1e-3, 0.5), layers=12, T=60.0, turbo=(10.0, 1.25)),
    'long-gap-nobl': s(len=(0.3, 3.0), layers=3, T=60.0, baseline=0, gap=(0.5, 0.5, 'sleep')),
    # --- GPU
    'nv-cnt100': s(gpu=1, sensor='nvml-counter', rate=50, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-cnt20': s(gpu=1, sensor='nvml-counter', gupd=0.02, rate=100, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-cnt100-10': s(gpu=1, sensor='nvml-counter', rate=10, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-cnt-jit': s(gpu=1, sensor='nvml-counter', ujit=1e-3, rate=50, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-cnt-noise': s(gpu=1, sensor='nvml-counter', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), noise=(0.02, 0.02)),
    'nv-cnt-noise2': s(gpu=1, sensor='nvml-counter', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), noise=(0.02, 0.02), layers=3),
    'nv-mean100': s(gpu=1, sensor='nvml-mean', rate=50, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-mean-unk': s(gpu=1, sensor='nvml-mean', winknown=0, rate=50, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-mean-noise': s(gpu=1, sensor='nvml-mean', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), noise=(0.02, 0.02)),
    'nv-inst20': s(gpu=1, sensor='nvml-instant', gupd=0.02, rate=100, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-inst20-unk': s(gpu=1, sensor='nvml-instant', gupd=0.02, winknown=0, rate=100, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-inst-noise': s(gpu=1, sensor='nvml-instant', gupd=0.02, rate=100, T=60.0, watts=(40, 250), idle=(20, 60), noise=(0.02, 0.02)),
    'nv-part': s(gpu=1, sensor='nvml-part', rate=50, T=60.0, watts=(40, 250), idle=(20, 60)),
    'nv-part-noise': s(gpu=1, sensor='nvml-part', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), noise=(0.02, 0.02)),
    'nv-part-gap': s(gpu=1, sensor='nvml-part', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), gap=(0.3, 0.05, 'sleep')),
    'nv-part-long': s(gpu=1, sensor='nvml-part', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), len=(0.05, 0.6), layers=5),
    'nv-mean-long': s(gpu=1, sensor='nvml-mean', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), len=(0.05, 0.6), layers=5),
    'nv-mean-nobl': s(gpu=1, sensor='nvml-mean', rate=50, T=60.0, watts=(40, 250), idle=(20, 60), baseline=0, gap=(0.3, 0.05, 'sleep')),
    # --- boards and meters
    'ina-known': s(sensor='ina', lagknown=1, rate=50, T=60.0, watts=(2, 9), idle=(3, 6)),
    'ina-unk': s(sensor='ina', rate=50, T=60.0, watts=(2, 9), idle=(3, 6)),
    'ina-unk-gap': s(sensor='ina', rate=50, T=60.0, watts=(2, 9), idle=(3, 6), gap=(0.1, 0.3, 'sleep')),
    'ina-fast': s(sensor='ina', tau=0.05, rate=100, T=20.0, watts=(2, 9), idle=(3, 6)),
    'ina-long': s(sensor='ina', tau=0.4, rate=50, T=60.0, watts=(2, 9), idle=(3, 6), len=(0.2, 2.0), layers=3),
    'ina-noise': s(sensor='ina', rate=50, T=60.0, watts=(2, 9), idle=(3, 6), noise=(0.02, 0.02)),
    'ina-10hz': s(sensor='ina', rate=10, T=60.0, watts=(2, 9), idle=(3, 6), iupd=0.1),
    'wall-long': s(sensor='wall', T=300.0, len=(3.0, 15.0), layers=3, watts=(20, 90)),
    'wall-short': s(sensor='wall', T=300.0, len=(5 * ms, 80 * ms), layers=6, watts=(20, 90), gap=(0.1, 0.5, 'sleep')),
    'wall-long-unk': s(sensor='wall', T=300.0, len=(3.0, 15.0), layers=3, watts=(20, 90), winknown=0, noise=(0.01, 0.01)),
    'wall-nobl': s(sensor='wall', T=300.0, len=(1.0, 8.0), layers=3, watts=(20, 90), baseline=0),
}
S.update(
    {
        'x-nolate': s(late=0),
        'x-noself': s(self=0),
        'x-nobg': s(bg=0),
        'x-nolate-nobg': s(late=0, bg=0),
        'x-T60': s(T=60.0),
        'x-p101': s(update='p976'),
        'x-notick': s(tick=1e-7),
        'x-edges': s(edges=1),
        'x-jit3': s(jit=0.3),
    }
)
P = dict(update='p976', T=60.0)
S.update(
    {
        'y-base': s(**P),
        'y-nothr': s(threadrows=0, **P),
        'y-nobusy': s(busy='none', **P),
        'y-nolate': s(late=0, **P),
        'y-len': s(len=(2e-3, 8e-3), **P),
        'y-bl10': s(baseline=10.0, **P),
        'y-L8': s(layers=8, **P),
        'y-between': s(between=2e-3, **P),
        'y-self0': s(self=0, between=2e-3, **P),
        'y-idle5': s(**dict(P, idle=(5, 6))),
    }
)
S.update(
    {
        'z-idleout': s(outbusy=0, **P),
        'z-idleout2': s(outbusy=0, between=2e-3, **P),
        'z-idleout2-e': s(outbusy=0, between=2e-3, edges=1, **P),
        'z-e': s(edges=1, **P),
        'z-e-between': s(edges=1, between=2e-3, **P),
        'z-none': s(busy='none', threadrows=0, tick=1e-7, outbusy=0, between=2e-3, **P),
        'z-late0': s(late=0, outbusy=0, between=2e-3, tick=1e-7, **P),
    }
)
Q = dict(update='p976', T=60.0, between=2e-3)
S.update(
    {
        'w-base': s(**Q),
        'w-exact': s(tick=1e-7, **Q),
        'w-pool0-exact-nothr': s(tick=1e-7, threadrows=0, **Q),
        'w-none': s(busy='none', threadrows=0, tick=1e-7, **Q),
        'w-outzero': s(tick=1e-7, late=0, bg=0, **Q),
    }
)
for k in [
    'plain12',
    'plain3',
    'plain30',
    'us50',
    'irregular',
    'partial',
    'nested30',
    'gaps',
    'gapspan',
    'warm-gap',
    'rate10',
    'rate1000',
    'both',
    'turbo60',
    'fsteps',
    'drift-exp',
    'nobl-gap',
    'nobl-10',
    'o-bursty',
    'o-steady',
    'thr2',
    'thr4-own',
    'thr8',
    'pool3',
    'long',
    'mid-noise',
    'mixed',
    'both-rate10',
    'T5',
    'stat',
    'sampled',
]:
    S['e-' + k] = dict(S[k], edges=1)
S.update({'v-y': s(edgebusy=1, **P), 'v-w': s(edgebusy=1, **Q), 'v-we': s(edgebusy=1, edges=1, **Q), 'v-ye': s(edgebusy=1, edges=1, **P)})
for k in ['long', 'mid-noise', 'long-300', 'mixed-noise', 'long-noise10', 'mixed-turbo']:
    S['b0-' + k] = dict(S[k], bg=0)
G = dict(gpu=1, rate=100, T=60.0, watts=(40, 250), idle=(20, 60), sensor='nvml-instant', gupd=0.02)
S['nv-inst20-long'] = s(**dict(G, len=(0.03, 0.4), layers=6))
S['nv-inst20-3'] = s(**dict(G, layers=3))
S['nv-inst20-jit'] = s(**dict(G, ujit=1e-3))
S['nv-inst20-slow'] = s(**dict(G, rate=50))
S['nv-inst100'] = s(**dict(G, gupd=0.1))
S['nv-inst100-unk'] = s(**dict(G, gupd=0.1, winknown=0))
for k in ['long', 'mid-noise', 'long-300']:
    S['bs-' + k] = dict(S[k], busy='stat')
    S['bo-' + k] = dict(S[k], others=['rare'])
    S['bq-' + k] = dict(S[k], bg=0.3)
