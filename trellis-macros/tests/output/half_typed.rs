pub mod orders { # [derive (Debug)] pub struct Created { pub order_id : , }
# [derive ()] pub struct Archive { pub order_id : }
pub struct Sent ;
impl Serialize for Created { fn serialize < S : :: trellis :: __private :: Serializer > (& self , serializer : S) -> :: trellis :: __private :: core :: result :: Result < S :: Ok , S :: Error > { :: trellis :: __private :: Serializer :: serialize_unit (serializer) }
} impl < 'de > Deserialize < 'de > for Created { fn deserialize < D : :: trellis :: __private :: Deserializer < 'de >> (_ : D) -> :: trellis :: __private :: core :: result :: Result < Self , D :: Error > { :: trellis :: __private :: core :: result :: Result :: Err (:: trellis :: __private :: DeserializeError :: custom ("unfinished")) }
} impl JsonSchema for Created { fn schema_name () -> :: trellis :: __private :: std :: borrow :: Cow < 'static , :: trellis :: __private :: core :: primitive :: str > { :: trellis :: __private :: std :: borrow :: Cow :: Borrowed ("unfinished") }
fn json_schema (_ : & mut :: trellis :: __private :: SchemaGenerator) -> :: trellis :: __private :: Schema { :: trellis :: __private :: core :: default :: Default :: default () }
} # [automatically_derived] # [allow (deprecated)] impl :: trellis :: __private :: Event for Created { type Payload = Created ;
const DECLARATION : :: trellis :: __private :: EventDeclaration = :: trellis :: __private :: EventDeclaration :: new ("acme.orders@v1" , "orders.created") ;
}
# [automatically_derived] # [allow (deprecated)] impl :: trellis :: __private :: Event for Sent { type Payload = Order ;
const DECLARATION : :: trellis :: __private :: EventDeclaration = :: trellis :: __private :: EventDeclaration :: new ("acme.orders@v1" , "orders.sent") ;
}
impl Serialize for Archive { fn serialize < S : :: trellis :: __private :: Serializer > (& self , serializer : S) -> :: trellis :: __private :: core :: result :: Result < S :: Ok , S :: Error > { :: trellis :: __private :: Serializer :: serialize_unit (serializer) }
} impl < 'de > Deserialize < 'de > for Archive { fn deserialize < D : :: trellis :: __private :: Deserializer < 'de >> (_ : D) -> :: trellis :: __private :: core :: result :: Result < Self , D :: Error > { :: trellis :: __private :: core :: result :: Result :: Err (:: trellis :: __private :: DeserializeError :: custom ("unfinished")) }
} impl JsonSchema for Archive { fn schema_name () -> :: trellis :: __private :: std :: borrow :: Cow < 'static , :: trellis :: __private :: core :: primitive :: str > { :: trellis :: __private :: std :: borrow :: Cow :: Borrowed ("unfinished") }
fn json_schema (_ : & mut :: trellis :: __private :: SchemaGenerator) -> :: trellis :: __private :: Schema { :: trellis :: __private :: core :: default :: Default :: default () }
} # [automatically_derived] # [allow (deprecated)] impl :: trellis :: __private :: Job for Archive { type Payload = Archive ;
type Result = () ;
type Update = Order ;
const DECLARATION : :: trellis :: __private :: JobDeclaration = :: trellis :: __private :: JobDeclaration :: new ("acme.orders@v1" , "orders.archive") . deadline (:: trellis :: __private :: core :: time :: Duration :: from_secs (60)) ;
}
# [doc = " The facade at `ctx.event`: the events of `acme.orders@v1`."] # [allow (dead_code , deprecated)] pub mod event { # [doc = " All events."] # [:: trellis :: __private :: core :: prelude :: v1 :: derive (:: trellis :: __private :: core :: clone :: Clone , :: trellis :: __private :: core :: marker :: Copy , :: trellis :: __private :: core :: fmt :: Debug ,)] pub struct Root { # [doc = " `orders.*`"] pub orders : Orders , }
impl Root { # [doc (hidden)] pub const ALL : Self = Self { orders : Orders :: ALL , }
; }
# [automatically_derived] impl :: trellis :: __private :: core :: default :: Default for Root { fn default () -> Self { Self :: ALL }
} # [doc = " The events `orders.*`."] # [:: trellis :: __private :: core :: prelude :: v1 :: derive (:: trellis :: __private :: core :: clone :: Clone , :: trellis :: __private :: core :: marker :: Copy , :: trellis :: __private :: core :: fmt :: Debug ,)] pub struct Orders { # [doc = " `orders.created`"] pub created : :: trellis :: __private :: EventHandle < super :: Created > , # [doc = " `orders.sent`"] pub sent : :: trellis :: __private :: EventHandle < super :: Sent > , }
impl Orders { # [doc (hidden)] pub const ALL : Self = Self { created : :: trellis :: __private :: EventHandle :: new () , sent : :: trellis :: __private :: EventHandle :: new () , }
; }
# [automatically_derived] impl :: trellis :: __private :: core :: default :: Default for Orders { fn default () -> Self { Self :: ALL }
} }
# [doc = " The facade at `ctx.event`, for use where there is no context."] # [allow (dead_code)] pub const EVENT : event :: Root = event :: Root :: ALL ;
# [doc = " The facade at `ctx.job`: the jobs of `acme.orders@v1`."] # [allow (dead_code , deprecated)] pub mod job { # [doc = " All jobs."] # [:: trellis :: __private :: core :: prelude :: v1 :: derive (:: trellis :: __private :: core :: clone :: Clone , :: trellis :: __private :: core :: marker :: Copy , :: trellis :: __private :: core :: fmt :: Debug ,)] pub struct Root { # [doc = " `orders.*`"] pub orders : Orders , }
impl Root { # [doc (hidden)] pub const ALL : Self = Self { orders : Orders :: ALL , }
; }
# [automatically_derived] impl :: trellis :: __private :: core :: default :: Default for Root { fn default () -> Self { Self :: ALL }
} # [doc = " The jobs `orders.*`."] # [:: trellis :: __private :: core :: prelude :: v1 :: derive (:: trellis :: __private :: core :: clone :: Clone , :: trellis :: __private :: core :: marker :: Copy , :: trellis :: __private :: core :: fmt :: Debug ,)] pub struct Orders { # [doc = " `orders.archive`"] pub archive : :: trellis :: __private :: JobHandle < super :: Archive > , }
impl Orders { # [doc (hidden)] pub const ALL : Self = Self { archive : :: trellis :: __private :: JobHandle :: new () , }
; }
# [automatically_derived] impl :: trellis :: __private :: core :: default :: Default for Orders { fn default () -> Self { Self :: ALL }
} }
# [doc = " The facade at `ctx.job`, for use where there is no context."] # [allow (dead_code)] pub const JOB : job :: Root = job :: Root :: ALL ;
# [doc = r" This contract, as a type."] # [:: trellis :: __private :: core :: prelude :: v1 :: derive (:: trellis :: __private :: core :: clone :: Clone , :: trellis :: __private :: core :: marker :: Copy , :: trellis :: __private :: core :: default :: Default , :: trellis :: __private :: core :: fmt :: Debug ,)] # [allow (dead_code)] pub struct Contract ;
# [automatically_derived] # [allow (deprecated)] impl :: trellis :: __private :: Contract for Contract { const ID : & 'static str = "acme.orders@v1" ;
type Events = event :: Root ;
type Jobs = job :: Root ;
fn events () -> :: trellis :: __private :: std :: vec :: Vec < :: trellis :: __private :: EventDeclaration > { :: trellis :: __private :: core :: convert :: From :: from ([< Created as :: trellis :: __private :: Event > :: DECLARATION , < Sent as :: trellis :: __private :: Event > :: DECLARATION]) }
fn jobs () -> :: trellis :: __private :: std :: vec :: Vec < :: trellis :: __private :: JobDeclaration > { :: trellis :: __private :: core :: convert :: From :: from ([< Archive as :: trellis :: __private :: Job > :: DECLARATION]) }
fn manifest () -> :: trellis :: __private :: Manifest { # [allow (unused_mut)] let mut manifest = :: trellis :: __private :: ManifestBuilder :: new ("acme.orders@v1" , "") ;
manifest . event :: < Created > ("") ;
manifest . event :: < Sent > ("") ;
manifest . job :: < Archive > ("") ;
manifest . build () }
} }
:: core :: compile_error ! { "unexpected end of input, expected identifier" }
:: core :: compile_error ! { "expected one of: `for`, parentheses, `unsafe`, `fn`, `extern`, identifier, `::`, `<`, `dyn`, square brackets, `*`, `&`, `!`, `impl`, `_`, lifetime" }
:: core :: compile_error ! { "write `tries = 8`" }
:: core :: compile_error ! { "write `result = path::to::Type`" }
:: core :: compile_error ! { "unexpected end of input, expected one of: `for`, parentheses, `unsafe`, `fn`, `extern`, identifier, `::`, `<`, `dyn`, square brackets, `*`, `&`, `!`, `impl`, `_`, lifetime" }
