"""nrg import of what GPU profilers write: databases of nsys export, tables of nsys stats and rocprofv3. No such file
was at hand: these follow the documented schemas, of several versions."""
import json
import os
import sqlite3
import unittest

from support import *
from test_import_layers import Layers

DATE = 1780000000 * 10**9  # of a session's start
PID, TID = 4711, 4712
GLOBAL_PID = (1 << 56) | PID << 24
GLOBAL_TID = GLOBAL_PID | TID
MS = 10**6
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT);
CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT);
CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, gridX INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
  category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,
  uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL);
"""


def insert(db, table, **row):
    db.execute("INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join('"%s"' % k for k in row),
                                                     ", ".join("?" * len(row))), list(row.values()))


class Nsight(Layers):
    def report(self, name="report.sqlite", start=DATE, schema=SCHEMA):
        """A session of 2 s: a range with a launch in it, a kernel of each of two GPUs that the process counts in
        another order than the machine, a copy, a fill."""
        path = self.path(name)
        if os.path.exists(path):
            os.unlink(path)
        db = sqlite3.connect(path)
        db.executescript(schema)
        for i, text in enumerate(("void gemm<float>(int)", "gemm", "cudaLaunchKernel_v7000", "step 3", "python",
                                  "adam"), 1):
            insert(db, "StringIds", id=i, value=text)
        if start:
            insert(db, "TARGET_INFO_SESSION_START_TIME", utcEpochNs=start)
        for gpu, bus in ((0, "0000:81:00.0"), (1, "0000:41:00.0")):
            insert(db, "TARGET_INFO_GPU", id=gpu, name="A", busLocation=bus)
            insert(db, "TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=gpu, pid=PID)
        insert(db, "ThreadNames", nameId=5, globalTid=GLOBAL_TID)
        insert(db, "NVTX_EVENTS", start=0, eventType=75, text="train", globalTid=GLOBAL_TID, domainId=1)
        insert(db, "NVTX_EVENTS", start=0, eventType=33, text="loop", globalTid=GLOBAL_TID, domainId=1, category=9)
        insert(db, "NVTX_EVENTS", start=100 * MS, end=1900 * MS, eventType=59, textId=4, globalTid=GLOBAL_TID, domainId=1,
               category=9)
        insert(db, "NVTX_EVENTS", start=150 * MS, end=300 * MS, eventType=59, text="forward", globalTid=GLOBAL_TID,
               domainId=0, int64Value=64)
        insert(db, "NVTX_EVENTS", start=160 * MS, eventType=34, text="mark", globalTid=GLOBAL_TID, domainId=0)
        insert(db, "CUPTI_ACTIVITY_KIND_RUNTIME", start=200 * MS, end=201 * MS, eventClass=0, globalTid=GLOBAL_TID,
               correlationId=55, nameId=3, returnValue=0)
        kernel = dict(contextId=1, streamId=7, globalPid=GLOBAL_PID, demangledName=1, shortName=2, gridX=1)
        insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", start=500 * MS, end=1500 * MS, deviceId=0, correlationId=55, **kernel)
        insert(db, "CUPTI_ACTIVITY_KIND_KERNEL", start=500 * MS, end=1000 * MS, deviceId=1, correlationId=56,
               **dict(kernel, demangledName=6, streamId=13))
        insert(db, "CUPTI_ACTIVITY_KIND_MEMCPY", start=400 * MS, end=450 * MS, deviceId=0, contextId=1, streamId=14,
               correlationId=57, globalPid=GLOBAL_PID, bytes=4, copyKind=1)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMSET", start=300 * MS, end=310 * MS, deviceId=0, contextId=1, streamId=14,
               correlationId=58, globalPid=GLOBAL_PID)
        db.commit()
        return db

    def test_spans(self):
        self.report().close()
        said = self.imports(self.path("report.sqlite"), "-o", self.path("n.nrg"))
        self.assertIn("nsight-systems, 7 spans", said)
        self.assertIn("4 spans of GPUs, 1 tied to the range that launched them", said)
        self.assertIn("1 payload of NVTX ranges not counted", said)
        spans = {s["name"]: s for s in self.spans(self.path("n.nrg"))}
        kernel = spans["void gemm<float>(int)"]
        self.assertEqual((kernel["kind"], kernel["track_kind"], kernel["domain"], kernel["track"], kernel["path"]),
                         ("kernel", "gpu", "gpu-1", "GPU 1 stream 7", ["step 3", "forward"]))
        self.assertEqual((kernel["begin_ns"], kernel["end_ns"]), (DATE + 500 * MS, DATE + 1500 * MS))
        self.assertEqual((spans["adam"]["domain"], spans["adam"]["track"]), ("gpu-0", "GPU 0 stream 13"))
        self.assertEqual((spans["Memcpy HtoD"]["detail"], spans["Memset"]["detail"]), ("memcpy", "memset"))
        self.assertEqual((spans["step 3"]["detail"], spans["step 3"]["track"], spans["forward"]["depth"]),
                         ("train/loop", "4711 thread 4712 python", 1))
        self.assertEqual((spans["cudaLaunchKernel"]["kind"], spans["cudaLaunchKernel"]["depth"]), ("runtime", 2))

    def test_energy(self):
        """Placed by its date, kernels get the power of the GPU that they ran on."""
        self.report().close()
        power = self.write("p.csv", "time_s,package-0:power_w,gpu-0:power_w,gpu-1:power_w\n" + "".join(
            "%.2f,50,200,100\n" % (DATE / 1e9 - 1 + i / 100) for i in range(501)))
        self.imports(power, "-o", self.path("run.nrg"))
        said = self.imports("--into", self.path("run.nrg"), self.path("report.sqlite"), "-o", self.path("j.nrg"))
        self.assertNotIn("outside", said)
        shown = self.nrg("attribute", "--by", "name", "--json", self.path("j.nrg"))
        rows = {r["name"]: r for r in json.loads(shown.stdout)["rows"]}
        self.assertAlmostEqual(rows["void gemm<float>(int)"]["energy_j"], 100, delta=2)
        self.assertAlmostEqual(rows["adam"]["energy_j"], 100, delta=2)

    def test_older_schemas(self):
        """Few columns, few tables: what is missing is missing."""
        db = sqlite3.connect(self.path("old.sqlite"))
        db.executescript("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
                         "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, [end] INT, streamId INT, shortName INT);"
                         "INSERT INTO StringIds VALUES (1, 'k'); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 3, 1);"
                         "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (NULL, 9, 3, 1), (8, 7, 3, 1), (20, 30, 3, 99);")
        db.close()
        said = self.imports(self.path("old.sqlite"), "-o", self.path("o.nrg"))
        self.assertIn("2 rows without a usable time or device left out", said)
        self.assertIn("no date of its session's start", said)
        self.assertEqual([(s["name"], s["begin_ns"], s["end_ns"], s["track"]) for s in self.spans(self.path("o.nrg"))],
                         [("k", 5, 9, "GPU 0 stream 3"), ("(kernel without a name)", 20, 30, "GPU 0 stream 3")])
        self.imports("--power-log", self.write("p.csv", "time_s,gpu-0:power_w\n0,5\n1,5\n"), self.path("old.sqlite"), "-o",
                     self.path("p.nrg"), "--offset", "0.1")
        self.assertEqual(self.spans(self.path("p.nrg"))[0]["begin_ns"], 10**8 + 5)

    def test_ranges_of_files_of_text(self):
        """nsys also takes NVTX from text files (NVTXT): such ranges have types of their own. Managed memory is copied, too."""
        db = self.report()
        for kind, name in ((60, "started"), (70, "text pushed"), (71, "text started")):
            insert(db, "NVTX_EVENTS", start=kind * 30 * MS, end=kind * 30 * MS + 5, eventType=kind, text=name, globalTid=GLOBAL_TID,
                   domainId=0)
        copy = dict(contextId=1, streamId=14, globalPid=GLOBAL_PID, bytes=4)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMCPY", start=460 * MS, end=470 * MS, deviceId=0, copyKind=11, **copy)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMCPY", start=480 * MS, end=490 * MS, deviceId=99999, copyKind=12, **copy)
        insert(db, "CUPTI_ACTIVITY_KIND_MEMCPY", start=480 * MS, end=490 * MS, deviceId=-1, copyKind=12, **copy)
        db.commit()
        db.close()
        said = self.imports(self.path("report.sqlite"), "-o", self.path("n.nrg"))
        names = [s["name"] for s in self.spans(self.path("n.nrg"))]
        self.assertLessEqual({"started", "text pushed", "text started"}, set(names))
        self.assertEqual((names.count("Memcpy HtoD"), names.count("Memcpy DtoH")), (2, 0))
        self.assertIn("2 rows without a usable time or device left out", said)

    def test_a_graph_as_a_whole(self):
        db = self.report()
        db.executescript("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT, graphId INT,"
                         " streamId INT, correlationId INT, globalPid INT);"
                         "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1600000000, 1700000000, 1, 12, 7, 70, %d);"
                         % GLOBAL_PID)
        db.close()
        self.imports(self.path("report.sqlite"), "-o", self.path("n.nrg"))
        self.assertEqual([s["domain"] for s in self.spans(self.path("n.nrg")) if s["name"] == "CUDA graph 12"], ["gpu-0"])

    def test_nothing_of_it_is_trusted(self):
        """Views and computed columns are code of whoever made the file: they are not read."""
        db = self.report()
        db.executescript("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY RENAME TO other;"
                         "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT * FROM other;"
                         "DROP TABLE CUPTI_ACTIVITY_KIND_MEMSET;"
                         "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (end INT, deviceId INT, streamId INT,"
                         " start INT AS (end - 10));"
                         "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET (end, deviceId, streamId) VALUES (50, 0, 1);")
        db.commit()
        db.close()
        said = self.imports(self.path("report.sqlite"), "-o", self.path("n.nrg"))
        self.assertIn("1 row without a usable time or device left out", said)
        self.assertEqual({s["name"] for s in self.spans(self.path("n.nrg")) if s["kind"] == "kernel"},
                         {"void gemm<float>(int)", "adam"})
        with open(self.path("report.sqlite"), "r+b") as f:
            f.seek(4096)
            f.write(b"\xff" * 4096)
        result = self.nrg("import", "-f", self.path("report.sqlite"), "-o", self.path("n.nrg"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertRegex(result.stderr, "report.sqlite: .*(damaged|neither)")

    def test_a_file_that_was_cut_off(self):
        db = self.report()
        db.executemany("INSERT INTO StringIds VALUES (?, ?)", ((100 + i, "x" * 100) for i in range(1000)))
        db.commit()
        db.close()
        with open(self.path("report.sqlite"), "rb") as f:
            whole = f.read()
        for size in (50, 1000, len(whole) // 2):
            self.assertRegex(self.refused(whole[:size]), "damaged|cut off")

    def test_other_databases(self):
        for script, words in (("CREATE TABLE a (b)", "neither a recording of nrg nor one that nsys export"),
                              ("CREATE TABLE rocpd_kernel_dispatch_00 (b)", "rocprofv3 --output-format csv"),
                              ("CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (b)", "nsys export --type sqlite")):
            db = sqlite3.connect(self.path("bad.json"))
            db.executescript(script)
            db.close()
            with open(self.path("bad.json"), "rb") as f:
                self.assertIn(words, self.refused(f.read()))
            os.unlink(self.path("bad.json"))


NSYS_CSV = """Processing [report.sqlite] with [/opt/nsys/reports/cuda_gpu_trace.py]...
Start (%s),Duration (%s),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
%s,%s,12,,,,,,,,,,1.0,2.0,Pageable,Device,NVIDIA A100-SXM4-40GB (1),1,,7,[CUDA memcpy Host-to-Device]
%s,%s,13,1,1,1,128,1,1,16,0.0,0.0,,,,,NVIDIA A100-SXM4-40GB (1),1,,7,"void gemm<float, 2>(int, int)"
%s,%s,14,1,1,1,128,1,1,16,0.0,0.0,,,,,NVIDIA A100-SXM4-40GB (0),1,,13,adam
"""
ROCPROF = '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",' \
          '"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size"\n'


class Tables(Layers):
    def named(self, name, text, *options):
        self.write(name, text)
        said = self.imports("-f", *options, self.path(name), "-o", self.path("out.nrg"))
        return said, self.spans(self.path("out.nrg"))

    def test_nsys_stats(self):
        for unit, times in (("ns", "1000000 500000 2000000 250000 2000001 3"),
                            ("us", "1000 500 2000 250 2000.001 0.003"),
                            ("ms", "1 0.5 2 0.25 2.000001 0.000003"), ("nsec", "1000000 500000 2000000 250000 2000001 3")):
            said, spans = self.named("t.csv", NSYS_CSV % ((unit, unit) + tuple(times.split())))
            self.assertIn("count from a start of its own", said)
            self.assertEqual([(s["name"], s["domain"], s["track"], s["begin_ns"], s["end_ns"])
                              for s in sorted(spans, key=lambda s: s["begin_ns"])],
                             [("Memcpy HtoD", "gpu-1", "GPU 1 stream 7", 1000000, 1500000),
                              ("void gemm<float, 2>(int, int)", "gpu-1", "GPU 1 stream 7", 2000000, 2250000),
                              ("adam", "gpu-0", "GPU 0 stream 13", 2000001, 2000004)])

    def test_units(self):
        """A unit that is not known is not taken for another one."""
        row = "\n1.5,2,1,A (0),7,[CUDA memcpy DtoH]\n"
        for unit in ("us", "\u03bcs", "\u00b5s", "usec"):
            _, spans = self.named("t.csv", "Start (%s),Duration (%s),CorrId,Device,Strm,Name" % (unit, unit) + row)
            self.assertEqual([(s["name"], s["begin_ns"], s["end_ns"]) for s in spans], [("Memcpy DtoH", 1500, 3500)])
        for unit in ("min", "", "NS s"):
            self.assertIn("bad.json:1: has times in '%s'" % unit,
                          self.refused("Start (%s),Duration (ns),CorrId,Device,Strm,Name" % unit + row))

    def test_nsys_calls(self):
        _, spans = self.named("t.csv", "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
                                       "10,5,cudaLaunchKernel,0,7,41,42,20,python\n20,5,cuLaunchKernelEx,0,7,41,42,20,python\n")
        self.assertEqual([s["kind"] for s in spans], ["runtime", "runtime"])

    def test_nsys_threads(self):
        _, spans = self.named("n.csv", "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl\n"
                                       "5,50,45,10,35,:step,41,42,0\n10,20,10,0,10,:forward,41,42,1\n")
        self.assertEqual([(s["name"], s["kind"], s["track_kind"], s["depth"]) for s in spans],
                         [(":forward", "span", "thread", 1), (":step", "span", "thread", 0)])

    def test_rocprofv3(self):
        """Agents are counted by their PCI addresses where agent_info.csv lies beside the trace."""
        rows = "".join('"KERNEL_DISPATCH","Agent %d",1,%d,77,1,8,"%s",1,%d,%d,0\n' % r for r in (
            (2, 0, "first(int, int)", 1000, 2000), (1, 0, "second", 1500, 2500), (2, 3, "third", 1500, 2500)))
        said, spans = self.named("9_kernel_trace.csv", ROCPROF + rows)
        self.assertIn("no agent_info.csv beside it", said)
        found = {s["name"]: (s["domain"], s["track"], s["begin_ns"], s["end_ns"]) for s in spans}
        self.assertEqual(found, {"first(int, int)": ("gpu-1", "GPU 1 stream 0", 1000, 2000),
                                 "second": ("gpu-0", "GPU 0 stream 0", 1500, 2500),
                                 "third": ("gpu-1", "GPU 1 stream 3", 1500, 2500)})
        self.write("9_agent_info.csv", '"Node_Id","Logical_Node_Id","Agent_Type","Location_Id","Domain"\n'
                   '0,0,"CPU",0,0\n4,1,"GPU",33536,0\n5,2,"GPU",768,0\n6,3,"GPU",49920,0\n')
        said, spans = self.named("9_kernel_trace.csv", ROCPROF + rows)
        self.assertNotIn("agent_info", said)
        self.assertEqual({s["name"]: s["domain"] for s in spans},
                         {"first(int, int)": "gpu-0", "second": "gpu-1", "third": "gpu-0"})
        # --agent-index absolute and type-relative; GPUs of the latter are counted by their nodes. Formerly just numbers of nodes.
        for first, second in (("Agent 6", "Agent 4"), ("GPU 2", "GPU 0"), ("6", "4"), ("GPU 2", "GPU 7")):
            _, spans = self.named("9_kernel_trace.csv",
                                  ROCPROF + rows.replace("Agent 2", first).replace("Agent 1", second))
            self.assertEqual({s["name"]: s["domain"] for s in spans},
                             {"first(int, int)": "gpu-2", "second": "gpu-7" if second == "GPU 7" else "gpu-1", "third": "gpu-2"})

    def test_other_traces_of_rocprofv3(self):
        said, spans = self.named("1_memory_copy_trace.csv",
                              '"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id",'
                              '"Start_Timestamp","End_Timestamp"\n'
                              '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE","Agent 0","Agent 4",1,10,20\n'
                              '"MEMORY_COPY","MEMORY_COPY_HOST_TO_HOST","Agent 0","Agent 1",1,10,20\n'
                              '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST","Agent 4","Agent 0",2,30,40\n')
        self.assertIn("1 copy from host to host, which no GPU makes, left out", said)
        self.assertEqual([(s["name"], s["domain"], s["detail"]) for s in spans],
                         [("Memcpy HtoD", "gpu-0", "memcpy"), ("Memcpy DtoH", "gpu-0", "memcpy")])
        header = '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
        _, spans = self.named("1_marker_api_trace.csv", header + '"MARKER_CORE_API","step, 1",31,32,5,100,200\n')
        self.assertEqual([(s["name"], s["kind"], s["track"]) for s in spans], [("step, 1", "span", "31 thread 32")])
        _, spans = self.named("1_hip_api_trace.csv", header + '"HIP_RUNTIME_API","hipLaunchKernel",31,32,5,100,200\n')
        self.assertEqual([(s["name"], s["kind"]) for s in spans], [("hipLaunchKernel", "runtime")])

    def test_times_since_the_machine_was_started(self):
        """rocprofv3's clock is the recording's own: the kernel gets the energy of its second."""
        self.write("s.txt", "seed 1\ndomain gpu-0\n  power 80\n")
        script = self.write("c.py", "import time\na = time.clock_gettime_ns(time.CLOCK_BOOTTIME)\ntime.sleep(0.5)\n"
                            "print(a, time.clock_gettime_ns(time.CLOCK_BOOTTIME))\n")
        run = self.nrg("run", "--sensor", "simulate:" + self.path("s.txt"), "-o", self.path("run.nrg"), "--", PYTHON, script)
        begin, end = (int(t) for t in run.stdout.split()[:2])
        row = '"KERNEL_DISPATCH","GPU 0",1,1,77,1,8,"k",1,%d,%d,0\n'
        trace = self.write("k.csv", ROCPROF + row % (begin, end))
        said = self.imports("--into", self.path("run.nrg"), trace, "-o", self.path("j.nrg"))
        self.assertIn("taken as the recording's clock", said)
        shown = self.nrg("attribute", "--by", "name", "--json", self.path("j.nrg"))
        row_j = [r for r in json.loads(shown.stdout)["rows"] if r["name"] == "k"][0]["energy_j"]
        self.assertAlmostEqual(row_j, 80 * (end - begin) / 1e9, delta=4)
        other = self.write("k.csv", ROCPROF + row % (begin + 10**14, end + 10**14))
        said = self.imports("-f", "--into", self.path("run.nrg"), other, "-o", self.path("j.nrg"), code=1)
        self.assertIn("--offset SECONDS", said)

    def test_bad_rows(self):
        self.assertIn("bad.json:3: has 2 columns, the header has 12", self.refused(
            ROCPROF + '"KERNEL_DISPATCH","Agent 4",1,1,77,1,8,"k",1,5,9,0\na,b\nc,d\n'))
        said, spans = self.named("t.csv", ROCPROF + '"K","Agent 4",1,1,77,1,8,"k",1,5,9,0\n"K","",1,1,77,1,8,"k",1,5,9,0\n'
                                 '"K","Agent 4",1,1,77,1,8,"k",1,x,9,0\n"K","Agent 4",1,1,77,1')
        self.assertIn("2 rows without a usable time or device left out", said)
        self.assertEqual(len(spans), 1)
        for rest in ('"K', '"K","Agent 4",1,1,77,1,8,"k('):
            said, spans = self.named("t.csv", ROCPROF + '"K","Agent 4",1,1,77,1,8,"k",1,5,9,0\n' + rest)
            self.assertIn("its last line was cut off", said)
            self.assertEqual(len(spans), 1)

    def test_what_has_no_times(self):
        for text, words in (
                ("Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Name\n95.0,3481709,1,3,4,k\n", "cuda_gpu_trace"),
                ('"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"k",1,5,5,100\n', "*_kernel_trace.csv"),
                ('"Node_Id","Logical_Node_Id","Agent_Type"\n1,1,"GPU"\n', "*_kernel_trace.csv"),
                ('"Correlation_Id","Agent_Id","Kernel_Name","Counter_Name","Counter_Value","Start_Timestamp",'
                 '"End_Timestamp"\n1,1,"k","SQ_WAVES",5,1,2\n', "rocprofv3 --kernel-trace"),
                ('"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"\n'
                 '"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 2",1,"0x0",1,10,20\n', "*_kernel_trace.csv"),
                ("==4711== Profiling application: a\n", "nsys export --type sqlite")):
            self.assertIn(words, self.refused(text))
            self.assertIn(words, self.refused(text, "--offset", "0"))

    def test_options_of_layers_with_a_log_of_power(self):
        log = "time_s,gpu-0:power_w\n0,5\n1,5\n"
        for options in (("--offset", "5"), ("--domain", "gpu-0"), ("--layout", "packed"), ("--times", "nosuch.json")):
            self.assertIn("a log of power is given alone, or with --power-log", self.refused(log, *options))
        self.assertIn("is empty", self.refused("", "--offset", "5"))

    def test_names_of_files(self):
        for name, words in (("a.nsys-rep", "nsys export --type sqlite -o"), ("a.qdrep", "nsys export --type sqlite -o"),
                            ("a.pftrace", "--output-format csv"), ("a.ncu-rep", "nsys profile"),
                            ("h.xplane.pb", ".trace.json.gz"), ("a.qdstrm", "nsys export")):
            self.write(name, b"\x01\x02NVIDIA\x00\xff\n\x00")
            for options in ((), ("--offset", "0")):
                said = self.imports(*options, self.path(name), "-o", self.path("x.nrg"), code=1)
                self.assertEqual(len(said.splitlines()), 1, said)
                self.assertIn(words, said)


del Layers

if __name__ == "__main__":
    unittest.main()
