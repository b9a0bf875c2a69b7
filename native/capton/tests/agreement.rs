//! The scheduler decides as the pseudocode does, over long histories on a fabric of the paper's size.

use capton::fabric::Fabric;
use capton::plain::Plain;
use capton::scheduler::Scheduler;
use capton::Parameters;

const GBPS: i64 = 1_000_000_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

fn agree(fabric: &Fabric, parameters: Parameters, seed: u64) {
    let (mut scheduler, mut plain) =
        (Scheduler::new(fabric.clone(), parameters), Plain::new(fabric.clone(), parameters));
    let (mut random, mut now, hosts) = (Random(seed), 0, fabric.hosts() as u64);
    for id in 0..3000 {
        now += i128::from(random.below(4000));
        let (mut ours, mut theirs) = match random.below(8) {
            0..=3 => {
                let source = random.below(hosts);
                let destination = ((source + 1 + random.below(hosts - 1)) % hosts) as usize;
                let bytes = 1 + random.below(200_000);
                let asked = now - i128::from(random.below(2)) * i128::from(random.below(1_000_000));
                (
                    scheduler.request(id, source as usize, destination, bytes, now, asked).unwrap(),
                    plain.request(id, source as usize, destination, bytes, now, asked).unwrap(),
                )
            }
            4 => {
                let id = random.below(id + 1);
                (scheduler.finished(id, now), plain.finished(id, now))
            }
            5 => {
                let link = random.below(fabric.capacities.len() as u64) as usize;
                let rate = fabric.capacities[link] / 4 * random.below(5) as i64;
                (scheduler.capacity(link, rate, now).unwrap(), plain.capacity(link, rate, now).unwrap())
            }
            _ => {
                now = now.max(scheduler.next_event().unwrap_or(now));
                (scheduler.expire(now), plain.expire(now))
            }
        };
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs, "event {id} of seed {seed}");
        assert_eq!(scheduler.next_event(), plain.next_event());
        assert!(scheduler.usage().iter().all(|(capacity, used)| (0..=*capacity).contains(used)));
    }
    assert!(scheduler.len() > 50, "{} flows are no load", scheduler.len());
}

#[test]
fn leaf_spine_and_fat_tree_with_all_parameters() {
    let leaf_spine = Fabric::new(
        (0..144).map(|host| vec![host / 16]).collect(),
        [vec![10 * GBPS; 288], vec![160 * GBPS / 3; 18]].concat(),
    );
    let fat_tree = Fabric::new(
        (0..64).map(|host| vec![host / 8, host / 16]).collect(),
        [(0..128).map(|link| GBPS * (1 + link / 2 % 3)).collect(), vec![5 * GBPS; 16], vec![7 * GBPS; 8]]
            .concat(),
    );
    for (seed, fabric) in [leaf_spine.unwrap(), fat_tree.unwrap()].iter().enumerate() {
        for (least_share, ageing, finish_timeout) in
            [(1_000_000, 0, 0), (1_000_000, 1 << 30, 2000), (400_000, 0, 500), (10_000, 1 << 28, 0)]
        {
            for seed in [seed as u64, 2 + seed as u64, 4 + seed as u64] {
                agree(fabric, Parameters { least_share, ageing, finish_timeout }, seed);
            }
        }
    }
}
