package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/minikudu/minikudu"
	"github.com/minikudu/minikudu/predicate"
	"github.com/minikudu/minikudu/schema"
)

const (
	eventsPerFile = 5000
	eventsPerRun  = 8 * eventsPerFile
	firstRun      = 266_904
	runStep       = 37
)

// The attributes of an event, the key first.
var (
	eventInts = []string{"runnumber", "eventnumber", "lumiblockn", "bunchid", "eventtime", "eventtimens", "lvl1id", "bcid_offset",
		"issimulation", "istestbeam", "iscalibration", "conditionsrun", "processid", "statuselement", "specialtag", "detectormask",
		"hltpsk", "l1psk", "bgcode", "fileindex", "oid"}
	eventDoubles = []string{"eventweight", "pileup", "luminosity"}
	eventTexts   = []string{"dsname", "streamname", "project", "datatype", "prodstep", "amitag", "release", "site", "owner", "smk", "hltkeys",
		"guid0", "guid1", "guid2", "guid3", "db0", "db1", "db2", "db3", "cnt0", "cnt1", "cnt2", "cnt3", "clid0", "clid1", "clid2", "clid3",
		"token", "l1trigmask", "l2trigmask", "eftrigmask", "physmask"}
)

// eventindex is a catalogue of events of a physics experiment: wide rows, many of their
// texts the same for a file or for a run.
func eventindex() *Workload {
	w := &Workload{
		Name:     "eventindex",
		About:    "56 attributes, about 2 KB a row as CSV, shuffled within files of 5,000; key (runnumber, eventnumber)",
		Spec:     minikudu.TableSpec{Key: []string{"runnumber", "eventnumber"}},
		rowBytes: 2200, update: "lumiblockn", filter: predicate.Gt("bunchid", 3000),
		// A table goes on with a new run.
		next: func(ctx context.Context, t *minikudu.Table) (int64, error) {
			run, found, err := last(ctx, t, "runnumber")
			if err != nil || !found {
				return 0, err
			}
			return ((run-firstRun)/runStep + 1) * eventsPerRun, nil
		},
		rows: func(first, n int64) func([]cell) {
			m := &eventMaker{r: seeded(3, first), number: first, end: first + n}
			return m.event
		},
	}
	for _, n := range eventInts {
		w.Spec.Columns = append(w.Spec.Columns, column(n, schema.Int64))
	}
	for _, n := range eventDoubles {
		w.Spec.Columns = append(w.Spec.Columns, column(n, schema.Double))
	}
	for _, n := range eventTexts {
		w.Spec.Columns = append(w.Spec.Columns, column(n, schema.String))
	}
	return w
}

// eventMaker makes the events of one file after another, from the first of a run.
type eventMaker struct {
	r           *rand.Rand
	number, end int64

	run   int64
	order []int      // of the events of the file
	texts []string   // of the run and the file: all but the last five
	fired [3][]int64 // triggers that fire often in the run, for each of the three masks
}

func (g *eventMaker) newRun(number int64) {
	g.run = firstRun + runStep*number
	pick := func(list ...string) string { return list[g.r.IntN(len(list))] }
	stream := pick("physics_Main", "physics_MinBias", "physics_ZeroBias", "calibration_LArCells", "express_express")
	kind, step := pick("AOD", "ESD", "RAW", "DAOD_RPVLL"), pick("merge", "recon", "daq", "deriv")
	tag := fmt.Sprintf("f%d_m%d", 594+number%7, 1435+number%5)
	g.texts = []string{fmt.Sprintf("data15_13TeV.%08d.%s.%s.%s.%s", g.run, stream, step, kind, tag), stream, "data15_13TeV", kind, step, tag,
		"AtlasProduction-20.1.5." + strconv.FormatInt(number%9, 10), pick("CERN-PROD_DATADISK", "BNL-OSG2_DATADISK", "IN2P3-CC_DATADISK"),
		"evtindex", strconv.FormatInt(2046+number%4, 10), fmt.Sprintf("%d;%d", 812+number%6, 395+number%8)}
	for m := range g.fired {
		g.fired[m] = nil
		for t := g.r.Int64N(6); t < 512; t += 1 + g.r.Int64N(13) {
			g.fired[m] = append(g.fired[m], t)
		}
	}
}

// newFile shuffles the events of a file and gives it its texts.
func (g *eventMaker) newFile(file int64) {
	g.order = g.r.Perm(int(min(eventsPerFile, g.end-g.number)))
	g.texts = g.texts[:11:11]
	for range 4 {
		g.texts = append(g.texts, fmt.Sprintf("%08X-%04X-%04X-%04X-%012X", g.r.Uint32(), g.r.IntN(1<<16), g.r.IntN(1<<16), g.r.IntN(1<<16), g.r.Int64N(1<<48)))
	}
	for i := range int64(4) {
		g.texts = append(g.texts, fmt.Sprintf("[DB=%08X-%d]", file*4+i, i))
	}
	g.texts = append(g.texts, "[CNT=CollectionTree]", "[CNT=POOLContainer(DataHeader)]", "[CNT=MetaData]", "[CNT=StreamRAW]",
		"[CLID=D82968A1-CF91-4320-B2DD-E0F739CBC7E6]", "[CLID=4DDBD295-EFCE-472A-9EC8-15CD35A9EB8D]",
		"[CLID=72FBBC6F-C8BE-4122-8790-DC627696C176]", "[CLID=00000000-0000-0000-0000-000000000000]")
}

// event makes the next row.
func (g *eventMaker) event(row []cell) {
	file, at := g.number/eventsPerFile, g.number%eventsPerFile
	if g.number%eventsPerRun == 0 {
		g.newRun(g.number / eventsPerRun)
	}
	if at == 0 {
		g.newFile(file)
	}
	inFile := int64(g.order[at])
	g.number++

	r, number := g.r, file*eventsPerFile%eventsPerRun+inFile
	lumi := 1 + number/220
	for i, n := range []int64{g.run, 2 * (number*31 + 1_000_000), lumi, r.Int64N(3564), 1_435_000_000 + g.run*60 + lumi*60 + r.Int64N(60), r.Int64N(1_000_000_000),
		number<<8 | r.Int64N(256), 0, 0, 0, 0, g.run - g.run%10, 1 + r.Int64N(4), 0, r.Int64N(3) / 2, 0x3fffff, 300 + lumi/40, 100 + lumi/60,
		r.Int64N(2), inFile, file<<32 | inFile} {
		row[i].n = n
	}
	row[21].f, row[22].f, row[23].f = 1, float64(r.IntN(4000))/100, 1e33+float64(lumi)*1e30
	for i, t := range g.texts {
		row[24+i].text = t
	}
	row[51].text = fmt.Sprintf("%s-%08X-%08X", g.texts[11], file, inFile)
	for m := range g.fired {
		row[52+m].text = g.mask(g.fired[m])
	}
	row[55].text = g.mask(g.fired[0][:5])
}

// mask lists triggers: most of those usual in the run and a few others.
func (g *eventMaker) mask(usual []int64) string {
	b := append(make([]byte, 0, 8*len(usual)), ';')
	for _, t := range usual {
		if g.r.IntN(10) < 8 {
			b = append(strconv.AppendInt(b, t, 10), ';')
		}
	}
	for range len(usual) / 2 {
		b = append(strconv.AppendInt(b, 512+g.r.Int64N(1024), 10), ';')
	}
	return string(b)
}
