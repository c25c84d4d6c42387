//! The rules of the policy, which the ablation (`ablation.rs`) leaves out one after the other.

macro_rules! rules {
    ($($name:ident: $what:literal,)*) => {
        /// A rule of the policy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Rule {
            $(
                #[doc = $what]
                $name,
            )*
        }

        #[cfg(test)]
        impl Rule {
            pub(crate) const ALL: &[Rule] = &[$(Rule::$name),*];

            /// Returns what the rule does.
            pub(crate) fn what(self) -> &'static str {
                match self {
                    $(Rule::$name => $what,)*
                }
            }
        }
    };
}

rules! {
    CountUnseen: "count traffic beside the proxy as one more flow",
    CountUnknown: "count new flows together as one flow",
    GiveSpare: "promise slow flows what nobody wants",
    FollowSlow: "let radio windows of slow flows follow the round-trip time",
    FollowOthers: "let radio windows follow it beside other traffic",
    WaitForGrowth: "take no growing flow for a slow one",
    WaitForEnd: "take no new flow that has just fallen silent for a fast one",
    ForgetSilent: "forget what a slow flow wants after a silent period",
    AskAnew: "measure anew what a slow flow wants once it takes more",
    SeeFast: "take a slow flow for a fast one once it takes a full share",
    LearnSlack: "learn the slack of receive windows",
    DoubtLow: "doubt a feed that is far too low",
    DoubtReceived: "doubt one by what it says was decoded",
    DoubtHigh: "doubt a feed that is far too high",
    DoubtUnclear: "doubt one after 5 s without a queue, or without a busy radio",
    DoubtFull: "doubt one only if it tells of a busy radio",
    DoubtRepair: "doubt none for a round-trip time",
    InferQueue: "infer the queue from the time on the radio leg",
    TakeBack: "take back corrections that a rare report tells too",
    CorrectUnseen: "correct what reports say of other traffic",
    BoundService: "bound what the radio could deliver by the reports",
    SeeShared: "see a queue that is too long to be ours",
    GoBack: "go back to the reports beside other traffic",
    Drain: "drain a queue for a moment, to learn whose it is",
    Settle: "drain what was queued before the first report",
    SparePaired: "take no burst for a reported queue",
    SpareBurst: "take no burst for an inferred queue",
    LearnUnqueued: "learn from rare reports what is no queue",
    DenyQueue: "disregard a rare report that the time on the leg denies",
    ShortenTarget: "keep a shorter queue in a fast radio",
    RiseFast: "rise faster after a long rise",
    EndRise: "end a rise at what is delivered",
    BoundRise: "bound each rise by what is delivered",
    Forget: "forget corrections while shares are not used",
    FallBack: "fall back to the reports while the proxy is empty",
    BoundFall: "bound a fall by what is delivered",
    FallShort: "fall in a short queue that grows",
    BoundInferred: "bound a fall by an inferred queue",
    ReturnSpare: "return to the reports while blocks are spare",
    Return: "return what a queue took",
    Stretch: "stretch radio windows while the radio is idle at times",
}

#[cfg(test)]
thread_local! {
    /// The rule that an ablation leaves out.
    pub(crate) static LEFT_OUT: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

impl Rule {
    /// Returns whether the rule applies: always, but for tests.
    pub(crate) fn applies(self) -> bool {
        #[cfg(test)]
        return LEFT_OUT.get() != Some(self);
        #[cfg(not(test))]
        true
    }
}
