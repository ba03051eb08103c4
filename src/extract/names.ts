/** What tells the name of a person from any other word with a capital: given names, and words that are none. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Common given names, in lower case. Where a capital says nothing, only these are names of people. */
export const givenNames = words(`
  aaron abby abdul bella abigail adam adele adrian ahmed aino aisha alan albert alejandro alena alessandro alex alexander
  alexandra alexis alfred ali alice alicia alina alison alma amanda amelia amina amir amy ana anders andre andrea andreas
  andrew andré anette angela angelika anika anita anja anjali ann anna anne annette annika anouk anthony antje anton antonia
  antonio antti arjun arne arnold arthur arun astrid aurora axel ayse ayşe barbara bastian bea beate beatrice beatriz ben
  benedikt benjamin bernd bernhard bert bettina bianca bill birgit björn bo bob boris brenda brian brigitte bruno callum camila
  camille carina carl carla carlo carlos carmen carol carolin caroline carsten caspar catherine cecilia charles charlie
  charlotte chiara chloe chloé chris christa christiane christina christine christoph christopher claire clara claudia claus
  colin connor cornelia cristina daniel daniela dave david debbie deborah deepak denise dennis derek diana diane diego dieter
  dirk dmitri dominic dominik donald doris dorothea dorothy dylan ed eddie edith eduard edward eero eleanor elena eleni eli
  elias elif elin elina elisa elisabeth elise elizabeth ella ellen elli elmar elsa else emil emilia emilie emily emma emre
  enrico eric erica erik erika erin ernst erwin esra esther ethan eugen eva evelyn fabian fatima fatma felicitas felix
  fernando fiona florian frances francesca francesco francisco franz franziska fred freddie frederik frida frieda friedrich
  fritz gabi gabriel gabriela gabriele gary gavin geoff george georg gerald gerd gerhard gertrud giorgio giovanni gisela giulia
  gordon graham greg gregor greta guido guillaume gunnar gunther günter günther gustav hamid hamza hanna hannah hannes hans
  harald harold harriet harry hartmut hasan hassan heather heidi heike heiko heiner heinrich heinz helen helena helga helmut
  hendrik henri henrik henry herbert hermann hilda hilde hiroshi holger horst hubert hugo ian ibrahim ida ignacio igor ilse
  ines inga inge ingeborg ingo ingrid irene irina iris irma isaac isabel isabell isabella isla ivan jack jackie jacob jacqueline
  jake jakob james jamie jan jana jane janet janina janine janne jasmin jason javier jean jeff jennifer jenny jens jeremy jerry
  jess jessica jill jim jimmy joachim joana joanna jochen joe joel johan johann johanna johannes john jon jonas jonathan jordan
  jorge josef josefine joseph joshua josé joyce juan juha juho julia julian juliane julie juliette julius jurgen jussi justin jutta
  jörg jürgen kai karen karin karl karla karolina karsten katarina kate katharina katherine kathleen kathrin kathy katja katrin
  kaya keith kelly ken kenji kerstin kevin khalid kim kirsten klara klaus konrad konstantin kristin kristina kristof kurt kyle
  lara lars laura lauren lea leah leila lena leni leo leon leonard leonie leslie levi lewis liam lilli lilly lily lina linda
  linnea lino linus lisa lisbeth liselotte lorenz lotta lotte louis louisa louise luca lucas lucia lucie lucy ludwig luis luisa luise
  lukas luke luna lutz lydia mads magdalena maja malte manfred manuel manuela marc marcel marco marcus mareike margaret margarete
  margit maria marianne marie marina mario marion marissa marius marjorie mark marko markus marlene marta martha martin martina
  mary mateo mathias mathilda matias matilda matt matteo matthew matthias maurice max maximilian maya megan mehmet mei melanie
  melissa mia michael michaela michelle miguel mika mike mikhail mikko mila milan minh miriam mohamed mohammed moira molly
  monica monika moritz mustafa nadia nadine naomi natalia natalie natascha nathan neil nele nelson niamh nick nicola nicolas nicole
  niels nigel niklas niko nils nina noah noel nora norbert nuria oleg olga oliver olivia omar oskar oscar otto owen pablo paige
  pamela paolo pascal patricia patrick paul paula pauline pedro peer pekka penny peter petra phil philip philipp philippa pia
  pierre priya rachel rafael rahul rainer raj rajesh ralf ralph ramona raphael ravi raúl rebecca regina reinhard renate rené
  ricardo riccardo richard rita rob robert roberta roberto robin roger roland rolf roman ron ronja rosa rosemarie ross roxana
  ruben rudi rudolf rupert russell ruth ryan sabine sabrina said sally salma sam samantha samuel sandra sanjay sara sarah sascha
  sean sebastian selma sergei sergio seán shannon sharon sheila shirley sibylle sid siegfried sigrid silke silvia simon simone
  siobhan sofia solveig sonja sophia sophie stefan stefanie steffen steffi stella stephan stephanie stephen steve steven stuart
  sue sunita susan susanne suzanne sven svenja svetlana swen sylvia sören tamara tanja tara tatjana ted teresa terry theo theodor
  theresa thomas thorsten tiago tiina tilman tim timo tina tobias todd tom tomas tommy toni tony torben torsten tracy trevor
  ulf ulla ulli ulrich ulrike ursula ute uwe valentin valentina valeria vanessa vera verena veronika victor victoria viktor vincent
  viola virginia vivian volker wadim walter waltraud wang wanda wendy werner wilhelm will willi william wolf wolfgang xaver xavier
  yan yara yasmin yasmine yuki yusuf yvonne zainab zara zoe zoë`);

/** Peoples, faiths, offices, breeds and colours that are written with a capital and name nobody, in lower case. */
export const noNames = words(`
  african albanian algerian american arab argentine argentinian armenian asian australian austrian bangladeshi basque bavarian
  belgian black blond blonde brazilian brit british briton brown bulgarian canadian catalan caucasian chilean colombian
  congolese croat croatian cuban cypriot czech dane danish dominican egyptian english estonian ethiopian european filipina filipino
  finn finnish flemish french georgian german ghanaian greek haitian hawaiian hispanic hungarian icelandic indian indonesian
  iranian iraqi irish israeli italian jamaican japanese jordanian kazakh kenyan korean kurd kurdish latina latino latvian lebanese
  libyan lithuanian macedonian malaysian maltese maori mexican moroccan nepali nigerian norwegian pakistani palestinian persian
  peruvian philippine pole polish portuguese romanian russian saudi scot scottish senegalese serb serbian sicilian slovak
  slovakian slovene slovenian somali spaniard spanish sri sudanese swede swedish swiss syrian taiwanese tamil thai tibetan
  tunisian turk turkish ugandan ukrainian venezuelan vietnamese welsh white yemeni
  agnostic anglican atheist baptist buddhist calvinist catholic christian evangelical hindu jain jew jewish lutheran methodist
  mormon muslim orthodox pagan pentecostal presbyterian protestant quaker shia sikh sunni
  ceo cto cfo coo cio cmo ciso vp svp evp phd md dj hr it qa pm mvp director head president professor prof captain chief chair
  chairman chairwoman chairperson vice senior junior lead principal manager dean mayor minister secretary treasurer governor
  senator ambassador editor founder cofounder co-founder partner owner member employee executive associate assistant deputy
  general colonel major lieutenant sergeant officer nurse surgeon attorney judge king queen prince princess lord lady
  vegan vegetarian keto paleo democrat republican conservative liberal socialist communist libertarian green labour tory
  aries taurus gemini cancer virgo libra scorpio sagittarius capricorn aquarius pisces
  labrador lab retriever poodle beagle husky bulldog corgi dachshund chihuahua pug rottweiler shepherd terrier collie golden
  border spaniel siamese bengal sphynx ragdoll maine tabby calico himalayan burmese birman dalmatian doberman
  pomeranian schnauzer greyhound mastiff pitbull mutt mixed newfoundland bernese shiba akita samoyed
  orange grey gray ginger boomer millennial adhd team duolingo youtube mother father
  army navy marines retired half pure
  italien italienne français française allemand allemande anglais anglaise espagnol espagnole américain américaine belge suisse
  portugais portugaise russe chinois chinoise japonais japonaise marocain marocaine algérien algérienne tunisien tunisienne
  canadien canadienne médecin avocat avocate infirmier infirmière professeur argentino argentina mexicano mexicana español
  española colombiano colombiana cubano cubana italiano italiana chileno chilena peruano peruana alemán alemana brasileño
  brasileña brasileiro brasileira português portuguesa tedesco tedesca francese inglese duitser duitse belg belgische fransman
  franse engelsman engelse spanjaard spaanse italiaan italiaanse turk turkse marokkaan marokkaanse pool poolse amerikaan
  amerikaanse chinees chinese nederlander nederlandse surinamer surinaamse
  god jesus christ allah satan death love life time music money coffee google excel chatgpt claude gpt siri alexa
  here there back home dead gone ok okay great good bad best worst right wrong sick late off away done`);

/** Words for offices and departments, not for places. */
export const departments =
  words(`hr it marketing accounting sales engineering support finance legal product design
  operations procurement compliance security research logistics generation gen team group department division staff management`);

/** Where people work, with a capital now and then, without the name of it, in lower case. */
export const generalPlaces =
  words(`school church office city government hospital home work university company college food tips
  money scale night night-time uni library factory warehouse court council state`);

/** German nouns that stand behind "bei", "in" and "ist" without an article and name nothing. */
export const germanNouns =
  words(`nacht tag tage tageslicht licht kerzenlicht regen sonne sonnenschein wind sturm schnee hitze
  kälte nebel wetter musik kaffee tee freunden freundinnen kunden kundinnen bekannten verwandten nachbarn kollegen bedarf gelegenheit
  dunkelheit minusgraden schichten nachtschicht frühschicht teilzeit vollzeit elternzeit kurzarbeit homeoffice ruhe eile hektik stress
  teams gruppen projekten miete untermiete eigentum scheidung trennung frieden angst furcht armut reichtum wohlstand luxus freiheit
  sicherheit sorge harmonie gemeinschaft partnerschaft beziehung wohngemeinschaft wg haft not saus würde sünde askese isolation altbau neubau hause
  quarantäne rente pension ausbildung therapie mist schrott klasse müll geschichte insolvent pleite spitze kacke scheiße scheisse
  super top toll murks pflicht zukunft vergangenheit käse quatsch zeit geduld hunger durst liebe hoffnung glaube arbeit schlaf
  sport natur schokolade bier wein wasser geld gott jesus glück pech zufall schicksal leben tod montag dienstag mittwoch donnerstag
  freitag samstag sonnabend sonntag januar februar märz april mai juni juli august september oktober november dezember frühling
  sommer herbst winter morgen mittag abend weihnachten ostern silvester`);
